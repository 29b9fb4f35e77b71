// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Defaults returns upstream's choices.
// Sources: k8s.io/kubernetes/pkg/controller/replicaset/config/v1alpha1, and BurstReplicas in
// pkg/controller/replicaset.
func Defaults() Options {
	return Options{Workers: 5, Burst: 500}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "replicaset",
		Summary:  "keeps as many Pods as each ReplicaSet wants",
		ActsOn:   []object.Resource{replicaSets},
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("concurrent-replicaset-syncs", &o.Workers, "how many ReplicaSets replicaset-controller works on at a time").StopsAtZero(),
			}
		},
		Gates: func(o *Options) []controllers.Gate {
			return []controllers.Gate{
				{Name: "PodDeletionCost", Set: func(on bool) { o.IgnoreDeletionCost = !on }},
				{Name: "DeploymentReplicaSetTerminatingReplicas", Set: func(on bool) { o.OmitTerminating = !on }},
			}
		},
	}, New)
}
