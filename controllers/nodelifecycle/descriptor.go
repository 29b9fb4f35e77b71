// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"time"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Defaults returns upstream's choices.
// Sources: k8s.io/kubernetes/pkg/controller/nodelifecycle (nodeUpdateWorkerSize), its
// config/v1alpha1/defaults.go, cmd/kube-controller-manager/app/options
// (nodelifecyclecontroller.go, and kubecloudshared.go for the period).
func Defaults() Options {
	return Options{
		Workers:                   8,
		NodeMonitorPeriod:         5 * time.Second,
		NodeMonitorGracePeriod:    50 * time.Second,
		NodeStartupGracePeriod:    time.Minute,
		NodeEvictionRate:          0.1,
		SecondaryNodeEvictionRate: 0.01,
		LargeClusterSizeThreshold: 50,
		UnhealthyZoneThreshold:    0.55,
	}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "nodelifecycle", Account: "node-controller",
		Summary:  "finds Nodes that stop posting their status, and taints them",
		ActsOn:   []object.Resource{{Version: "v1", Plural: "nodes", Kind: "Node"}},
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Duration("node-monitor-period", &o.NodeMonitorPeriod, "within what time it is noticed that a Node has fallen silent or is back"),
				controllers.Duration("node-monitor-grace-period", &o.NodeMonitorGracePeriod, "how long a Node may be silent before its state counts as unknown"),
				controllers.Duration("node-startup-grace-period", &o.NodeStartupGracePeriod, "the same for a Node that has never posted a status"),
				controllers.Float("node-eviction-rate", &o.NodeEvictionRate, "how many unreachable Nodes of a zone are given the taint that evicts, in a second"),
				controllers.Float("secondary-node-eviction-rate", &o.SecondaryNodeEvictionRate, "the same for a large zone that is partly down"),
				controllers.Int("large-cluster-size-threshold", &o.LargeClusterSizeThreshold, "a zone with more Nodes is large; in a smaller one that is partly down nothing is evicted"),
				controllers.Float("unhealthy-zone-threshold", &o.UnhealthyZoneThreshold, "the share of Nodes, of three at least, that are not ready in a zone that is partly down"),
			}
		},
		Gates: func(o *Options) []controllers.Gate {
			return []controllers.Gate{
				{Name: "NodeControllerLeaseCircuitBreaker", Set: func(on bool) { o.TrustCachedLeases = !on }},
			}
		},
	}, New)
}
