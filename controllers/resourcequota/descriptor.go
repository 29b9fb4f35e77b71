// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"time"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/resourcequota/config/v1alpha1.
func Defaults() Options {
	return Options{Workers: 5, SyncPeriod: 5 * time.Minute}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "resourcequota",
		Summary:  "counts what ResourceQuotas limit",
		ActsOn:   []object.Resource{kind},
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("concurrent-resource-quota-syncs", &o.Workers, "how many ResourceQuotas resourcequota-controller works on at a time").StopsAtZero(),
				controllers.Duration("resource-quota-sync-period", &o.SyncPeriod,
					"how often resourcequota-controller compares its sums with a full count; with 0 or less it does not"),
			}
		},
	}, New)
}
