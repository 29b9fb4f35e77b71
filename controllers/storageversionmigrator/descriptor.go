// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storageversionmigrator

import (
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/storageversionmigrator, workers.
func Defaults() Options {
	return Options{Workers: 5}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "svm",
		Summary:  "writes the objects of a kind again, so that they are stored in the present version",
		ActsOn:   []object.Resource{kind},
		Requires: []controllers.RequiredGate{{Name: "StorageVersionMigrator", On: true}},
		Rights:   Rights(),
		Defaults: Defaults(),
	}, New)
}
