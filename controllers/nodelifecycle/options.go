// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"time"

	"github.com/setpoint-io/setpoint/controllers"
)

// Options changes how the controller works. [Defaults] returns upstream's choices. The fields
// are called after upstream's flags, and take each value that those take.
type Options struct {
	// Workers is how many Nodes are worked on at a time.
	Workers int
	// NodeMonitorPeriod bounds the time in which the controller notices that a Node is
	// silent or has come back; all Nodes are checked five times as often. It may be
	// longer than NodeMonitorGracePeriod.
	NodeMonitorPeriod time.Duration
	// NodeMonitorGracePeriod is how long a Node may be silent before its state
	// counts as unknown. It must be several times as long as the kubelet
	// takes between two signs of life, 10 s.
	NodeMonitorGracePeriod time.Duration
	// NodeStartupGracePeriod is the same for a Node that has never posted a
	// status.
	NodeStartupGracePeriod time.Duration
	// NodeEvictionRate is how many Nodes of a zone are given a NoExecute taint in a
	// second; 0, less and NaN are none.
	NodeEvictionRate float64
	// SecondaryNodeEvictionRate is the rate in a large zone that is partly down.
	SecondaryNodeEvictionRate float64
	// LargeClusterSizeThreshold is how many Nodes a zone has more than to be large.
	// A smaller zone that is partly down gets no NoExecute taints.
	LargeClusterSizeThreshold int
	// UnhealthyZoneThreshold is the share of Nodes, of three at least, that are not
	// ready in a zone that is partly down.
	UnhealthyZoneThreshold float64
	// TrustCachedLeases turns a Node Unknown by its Lease in the cache, without a read
	// from the server, as upstream does without the feature gate
	// NodeControllerLeaseCircuitBreaker.
	TrustCachedLeases bool
}

// complete turns what stands for nothing into what the loop can work with.
func (o Options) complete() (Options, error) {
	o.NodeMonitorPeriod = max(o.NodeMonitorPeriod, time.Millisecond)
	o.NodeMonitorGracePeriod, o.NodeStartupGracePeriod = max(o.NodeMonitorGracePeriod, 1), max(o.NodeStartupGracePeriod, 1)
	for _, rate := range []*float64{&o.NodeEvictionRate, &o.SecondaryNodeEvictionRate} {
		if !(*rate > 0) { // NaN as well
			*rate = 0
		}
	}
	return o, controllers.CheckWorkers(o.Workers)
}
