// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ttlafterfinished

import (
	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/ttlafterfinished/config/v1alpha1.
func Defaults() Options {
	return Options{Workers: 5}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "ttl-after-finished",
		Summary:  "deletes Jobs some time after they have finished",
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("concurrent-ttl-after-finished-syncs", &o.Workers, "how many Jobs ttl-after-finished-controller works on at a time").StopsAtZero(),
			}
		},
	}, New)
}
