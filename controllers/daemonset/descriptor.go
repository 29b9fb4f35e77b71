// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Defaults returns upstream's choices.
// Sources: k8s.io/kubernetes/pkg/controller/daemon/config/v1alpha1, and BurstReplicas in
// pkg/controller/daemon.
func Defaults() Options {
	return Options{Workers: 2, Burst: 250}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "daemonset", Account: "daemon-set-controller",
		Summary:  "runs a Pod of each DaemonSet on every node that its template fits",
		ActsOn:   []object.Resource{kind},
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("concurrent-daemonset-syncs", &o.Workers, "how many DaemonSets daemonset-controller works on at a time").AtLeast(1),
			}
		},
	}, New)
}
