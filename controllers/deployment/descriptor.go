// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/deployment/config/v1alpha1.
func Defaults() Options {
	return Options{Workers: 5}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "deployment",
		Summary:  "rolls Deployments out and back, by way of ReplicaSets",
		ActsOn:   []object.Resource{kind},
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("concurrent-deployment-syncs", &o.Workers, "how many Deployments deployment-controller works on at a time").StopsAtZero(),
			}
		},
		Gates: func(o *Options) []controllers.Gate {
			return []controllers.Gate{
				{Name: "DeploymentReplicaSetTerminatingReplicas", Set: func(on bool) { o.OmitTerminating = !on }},
			}
		},
	}, New)
}
