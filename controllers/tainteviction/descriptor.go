// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package tainteviction

import (
	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/tainteviction, UpdateWorkerSize.
func Defaults() Options {
	return Options{Workers: 8}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "taint-eviction-controller", Account: "node-controller",
		Summary:  "deletes Pods that do not tolerate a NoExecute taint",
		Rights:   Rights(),
		Defaults: Defaults(),
	}, New)
}
