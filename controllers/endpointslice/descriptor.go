// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/endpointslice/config/v1alpha1.
func Defaults() Options {
	return Options{Workers: 5, MaxEndpointsPerSlice: 100}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "endpointslice",
		Summary:  "writes the EndpointSlices of Services that select Pods",
		ActsOn:   []object.Resource{serviceResource},
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("concurrent-service-endpoint-syncs", &o.Workers, "how many Services endpointslice-controller works on at a time").Between(1, 50),
				controllers.Int("max-endpoints-per-slice", &o.MaxEndpointsPerSlice, "how many endpoints an EndpointSlice holds at most, 1 to 1000").Between(1, mostMaxEndpoints),
				controllers.Duration("endpointslice-updates-batch-period", &o.BatchPeriod, "how long endpointslice-controller waits after a change of a Pod, to join it with the changes that follow"),
			}
		},
		Gates: func(o *Options) []controllers.Gate {
			return []controllers.Gate{
				{Name: "PreferSameTrafficDistribution", Set: func(on bool) { o.OnlyPreferClose = !on }},
			}
		},
	}, New)
}
