// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"time"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
)

// nodeFlags are those of node-lifecycle-controller. Every value is accepted, as by
// kube-controller-manager.
type nodeFlags struct {
	period, grace, startupGrace time.Duration
	rate, secondaryRate         float32
	large                       int32
	unhealthy                   float32
}

func (n *nodeFlags) flags(flags *pflag.FlagSet) {
	flags.DurationVar(&n.period, "node-monitor-period", 5*time.Second, "within what time it is noticed that a Node has fallen silent or is back")
	flags.DurationVar(&n.grace, "node-monitor-grace-period", 50*time.Second, "how long a Node may be silent before its state counts as unknown")
	flags.DurationVar(&n.startupGrace, "node-startup-grace-period", 60*time.Second, "the same for a Node that has never posted a status")
	flags.Float32Var(&n.rate, "node-eviction-rate", 0.1, "how many unreachable Nodes of a zone are given the taint that evicts, in a second")
	flags.Float32Var(&n.secondaryRate, "secondary-node-eviction-rate", 0.01, "the same for a large zone that is partly down")
	flags.Int32Var(&n.large, "large-cluster-size-threshold", 50, "a zone with more Nodes is large; in a smaller one that is partly down nothing is evicted")
	flags.Float32Var(&n.unhealthy, "unhealthy-zone-threshold", 0.55, "the share of Nodes, of three at least, that are not ready in a zone that is partly down")
}

// shortest stands for a period of no time at all: as soon as the last one is over.
const shortest = time.Millisecond

// options says what the flags say to a controller that takes 0 for its default.
func (n *nodeFlags) options() nodelifecycle.Options {
	return nodelifecycle.Options{
		NodeMonitorPeriod:         max(n.period, shortest),
		NodeMonitorGracePeriod:    max(n.grace, 1),
		NodeStartupGracePeriod:    max(n.startupGrace, 1),
		NodeEvictionRate:          perSecond(n.rate),
		SecondaryNodeEvictionRate: perSecond(n.secondaryRate),
		// In a zone that is partly down three Nodes are not ready, so it has more than one.
		LargeClusterSizeThreshold: int(max(n.large, 1)),
		UnhealthyZoneThreshold:    share(n.unhealthy),
	}
}

// perSecond is a rate, and -1 for none: 0, less, or no number.
func perSecond(rate float32) float64 {
	if !(rate > 0) {
		return -1
	}
	return float64(rate)
}

// share is the least share of Nodes that are not ready in a zone that is partly down. With 1
// no zone ever is, because it is down as a whole then, and so it is with more, or no number.
func share(of float32) float64 {
	if !(of <= 1) {
		return 1
	}
	return math.Max(float64(of), math.SmallestNonzeroFloat64)
}
