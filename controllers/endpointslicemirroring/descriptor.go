// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslicemirroring

import (
	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/endpointslicemirroring/config/v1alpha1.
func Defaults() Options {
	return Options{Workers: 5, MaxEndpointsPerSubset: 1000}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "endpointslicemirroring", Account: "endpointslicemirroring-controller",
		Summary:  "copies Endpoints written by hand into EndpointSlices",
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("mirroring-concurrent-service-endpoint-syncs", &o.Workers, "how many Endpoints endpointslice-mirroring-controller works on at a time").Between(1, 50),
				controllers.Int("mirroring-max-endpoints-per-subset", &o.MaxEndpointsPerSubset, "how many addresses of a subset of Endpoints are mirrored at most, 1 to 1000").Between(1, mostMaxEndpoints),
				controllers.Duration("mirroring-endpointslice-updates-batch-period", &o.BatchPeriod, "how long endpointslice-mirroring-controller waits after a change of Endpoints, to join it with the changes that follow"),
			}
		},
	}, New)
}
