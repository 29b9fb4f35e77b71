// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/endpoint/config/v1alpha1.
func Defaults() Options {
	return Options{Workers: 5}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "endpoint", Account: "endpoint-controller",
		Summary:  "writes the Endpoints of Services that select Pods",
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("concurrent-endpoint-syncs", &o.Workers, "how many Services endpoints-controller works on at a time").StopsAtZero(),
				controllers.Duration("endpoint-updates-batch-period", &o.BatchPeriod, "how long endpoints-controller waits after a change of a Pod, to join it with the changes that follow"),
			}
		},
	}, New)
}
