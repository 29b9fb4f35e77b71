// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/cronjob/config/v1alpha1.
func Defaults() Options {
	return Options{Workers: 5}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "cronjob",
		Summary:  "starts Jobs at the times of a schedule",
		ActsOn:   []object.Resource{kind},
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("concurrent-cron-job-syncs", &o.Workers, "how many CronJobs cronjob-controller works on at a time").AtLeast(1),
			}
		},
	}, New)
}
