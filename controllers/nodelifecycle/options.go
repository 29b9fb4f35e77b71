// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"fmt"
	"time"
)

// Options changes how the controller works. The zero value is upstream's choice;
// the fields are called after upstream's flags.
type Options struct {
	// Workers is how many Nodes are worked on at a time. 0 is 8.
	Workers int
	// NodeMonitorPeriod is within what time it is noticed that a Node has fallen silent
	// or has come back; all are looked at five times as often. It may be longer than
	// NodeMonitorGracePeriod. 0 is 5 s.
	NodeMonitorPeriod time.Duration
	// NodeMonitorGracePeriod is how long a Node may be silent before its state
	// counts as unknown. 0 is 50 s. It must be several times as long as the kubelet
	// takes between two signs of life, 10 s.
	NodeMonitorGracePeriod time.Duration
	// NodeStartupGracePeriod is the same for a Node that has never posted a
	// status. 0 is 60 s.
	NodeStartupGracePeriod time.Duration
	// NodeEvictionRate is how many Nodes of a zone are given a NoExecute taint in a
	// second. 0 is 0.1. Below 0 is none.
	NodeEvictionRate float64
	// SecondaryNodeEvictionRate is the rate in a large zone that is partly down. 0
	// is 0.01. Below 0 is none.
	SecondaryNodeEvictionRate float64
	// LargeClusterSizeThreshold is how many Nodes a zone has more than to be large.
	// A smaller zone that is partly down gets no NoExecute taints. 0 is 50.
	LargeClusterSizeThreshold int
	// UnhealthyZoneThreshold is the share of Nodes, of three at least, that are not
	// ready in a zone that is partly down. 0 is 0.55.
	UnhealthyZoneThreshold float64
	// TrustCachedLeases has a Node turned Unknown by what the cache says of its Lease,
	// without a look at the server's, as upstream without the feature gate
	// NodeControllerLeaseCircuitBreaker.
	TrustCachedLeases bool
}

// complete fills in the defaults.
//
// Sources: k8s.io/kubernetes/pkg/controller/nodelifecycle (nodeUpdateWorkerSize),
// its config/v1alpha1/defaults.go, cmd/kube-controller-manager/app/options
// (nodelifecyclecontroller.go, and kubecloudshared.go for the period).
func (o Options) complete() (Options, error) {
	switch {
	case o.Workers < 0:
		return o, fmt.Errorf("%d workers; give 1 or more, or 0 for the default", o.Workers)
	case o.NodeMonitorPeriod < 0 || o.NodeMonitorGracePeriod < 0 || o.NodeStartupGracePeriod < 0:
		return o, fmt.Errorf("a period below zero: monitor %s, monitor grace %s, startup grace %s; give 0 for a default",
			o.NodeMonitorPeriod, o.NodeMonitorGracePeriod, o.NodeStartupGracePeriod)
	case o.LargeClusterSizeThreshold < 0:
		return o, fmt.Errorf("large zones from %d nodes; give 1 or more, or 0 for the default", o.LargeClusterSizeThreshold)
	case o.UnhealthyZoneThreshold < 0 || o.UnhealthyZoneThreshold > 1:
		return o, fmt.Errorf("an unhealthy zone threshold of %g; it is a share, between 0 and 1", o.UnhealthyZoneThreshold)
	}
	orElse(&o.Workers, 8)
	orElse(&o.NodeMonitorPeriod, 5*time.Second)
	orElse(&o.NodeMonitorGracePeriod, 50*time.Second)
	orElse(&o.NodeStartupGracePeriod, 60*time.Second)
	orElse(&o.NodeEvictionRate, 0.1)
	orElse(&o.SecondaryNodeEvictionRate, 0.01)
	orElse(&o.LargeClusterSizeThreshold, 50)
	orElse(&o.UnhealthyZoneThreshold, 0.55)
	if o.NodeMonitorPeriod < time.Millisecond {
		return o, fmt.Errorf("a monitor period of %s; give a millisecond or more, or 0 for the default", o.NodeMonitorPeriod)
	}
	return o, nil
}

func orElse[T comparable](v *T, otherwise T) {
	if *v == *new(T) {
		*v = otherwise
	}
}
