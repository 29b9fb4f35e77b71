// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/disruption/config/v1alpha1.
func Defaults() Options {
	return Options{Workers: 1}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "disruption",
		Summary:  "counts the Pods that PodDisruptionBudgets protect, so that evictions keep to them",
		ActsOn:   []object.Resource{kind},
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("concurrent-disruption-syncs", &o.Workers, "how many PodDisruptionBudgets disruption-controller works on at a time").StopsAtZero(),
			}
		},
	}, New)
}
