// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package volumeexpander

import "github.com/setpoint-io/setpoint/controllers"

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/volume/expand, defaultWorkerCount.
func Defaults() Options { return Options{Workers: 10} }

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "persistentvolume-expander", Account: "expand-controller",
		Summary:  "hands the growth of volumes over to the drivers that resize them",
		Rights:   Rights(),
		Defaults: Defaults(),
	}, New)
}
