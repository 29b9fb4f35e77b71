// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/garbagecollector/config/v1alpha1.
func Defaults() Options {
	return Options{Workers: 20}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "garbagecollector", Account: "generic-garbage-collector",
		Summary:  "deletes objects whose owners are gone",
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Switch("enable-garbage-collector", "run garbage-collector-controller, if it is among --controllers"),
				controllers.Int("concurrent-gc-syncs", &o.Workers, "how many objects garbage-collector-controller works on at a time").StopsAtZero(),
			}
		},
	}, New)
}
