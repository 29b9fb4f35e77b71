// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/internal/nodestate"
)

// sighting is what is seen of a node at one look.
type sighting struct {
	name     string
	uid      types.UID
	zone     string
	excluded bool // does not count for the state of its zone
	// ready is the status of the Ready condition, "" where there is none.
	ready corev1.ConditionStatus
	// unknown: there is nothing left to turn Unknown.
	unknown bool
	// noExecute: it has a NoExecute taint of this controller.
	noExecute bool
	// heartbeat and renewed are by clocks of others. They are compared with what
	// was seen before, never with the time.
	heartbeat time.Time
	renewed   time.Time // of the Lease; zero where there is none
}

// labelExcluded leaves a node out when the state of its zone is computed.
// Source: k8s.io/kubernetes/pkg/controller/nodelifecycle,
// labelNodeDisruptionExclusion.
const labelExcluded = "node.kubernetes.io/exclude-disruption"

// see returns what is seen of a node and its Lease, which may be nil.
func see(node *corev1.Node, lease *coordinationv1.Lease) sighting {
	s := sighting{
		name: node.Name, uid: node.UID, zone: zoneOf(node.Labels),
		unknown:   allUnknown(node),
		noExecute: hasNoExecute(node.Spec.Taints),
		// What never was posted is as old as the node. The condition that this controller
		// then writes has the same value, so it is not a heartbeat.
		heartbeat: node.CreationTimestamp.Time,
	}
	_, s.excluded = node.Labels[labelExcluded]
	if ready := nodestate.Condition(node, corev1.NodeReady); ready != nil {
		s.ready, s.heartbeat = ready.Status, ready.LastHeartbeatTime.Time
	}
	s.renewed = renewed(lease)
	return s
}

// renewed returns when a Lease says that it was renewed, zero where there is none.
func renewed(lease *coordinationv1.Lease) time.Time {
	if lease == nil || lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Time
}

// health is what is known of a node from one look to the next.
type health struct {
	uid       types.UID
	seen      uint64 // number of the last check of it
	posted    bool
	heartbeat time.Time
	renewed   time.Time
	// alive is when the last heartbeat arrived, by the local clock: the clocks of nodes
	// differ.
	alive time.Time
	// attended is when its run was last requested because it is silent and not Unknown.
	attended time.Time
	// confirmed: since the last heartbeat the server's Lease was found to be as silent as
	// the cache's.
	confirmed bool
	// down is since when the node is not ready, zero while it is.
	down time.Time
	// granted: it may be given a NoExecute taint.
	granted bool
}

// newHealth is that of a node which is seen for the first time. That alone is a
// heartbeat: the time of the one before is not known here.
func newHealth(s sighting, now time.Time) *health {
	return &health{uid: s.uid, posted: s.ready != "", heartbeat: s.heartbeat, renewed: s.renewed, alive: now}
}

// look notes the signs of life: a heartbeat in the status, or the Lease renewed.
func (h *health) look(s sighting, now time.Time) {
	if !s.heartbeat.Equal(h.heartbeat) || s.renewed.After(h.renewed) {
		h.lives(now)
	}
	h.posted, h.heartbeat, h.renewed = s.ready != "", s.heartbeat, s.renewed
}

// lives records a heartbeat.
func (h *health) lives(now time.Time) { h.alive, h.confirmed = now, false }

// silentIn returns how long the node may still be without a heartbeat. It is silent where
// nothing is left.
func (h *health) silentIn(o Options, now time.Time) time.Duration {
	grace := o.NodeMonitorGracePeriod
	if !h.posted {
		grace = o.NodeStartupGracePeriod
	}
	return h.alive.Add(grace).Sub(now)
}

// zoneOf returns the failure zone that a node's labels name, "" for none. The beta
// labels count first, as upstream has it.
// Source: k8s.io/component-helpers/node/topology, GetZoneKey.
func zoneOf(labels map[string]string) string {
	first := func(keys ...string) string {
		for _, key := range keys {
			if value, ok := labels[key]; ok {
				return value
			}
		}
		return ""
	}
	region := first(corev1.LabelFailureDomainBetaRegion, corev1.LabelTopologyRegion)
	zone := first(corev1.LabelFailureDomainBetaZone, corev1.LabelTopologyZone)
	if region == "" && zone == "" {
		return ""
	}
	return region + "/" + zone
}
