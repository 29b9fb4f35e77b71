// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicationcontroller

import (
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Defaults returns upstream's choices.
// Sources: k8s.io/kubernetes/pkg/controller/replication/config/v1alpha1, and BurstReplicas in
// pkg/controller/replication.
func Defaults() Options {
	return Options{Workers: 5, Burst: 500}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "replicationcontroller", Account: "replication-controller",
		Summary:  "keeps as many Pods as each ReplicationController wants",
		ActsOn:   []object.Resource{replicationControllers},
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("concurrent-rc-syncs", &o.Workers, "how many ReplicationControllers replicationcontroller-controller works on at a time").StopsAtZero(),
			}
		},
		Gates: func(o *Options) []controllers.Gate {
			return []controllers.Gate{
				{Name: "PodDeletionCost", Set: func(on bool) { o.IgnoreDeletionCost = !on }},
			}
		},
	}, New)
}
