// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeipam

import (
	corev1 "k8s.io/api/core/v1"
)

// Reasons of Events. The first two are upstream's.
// Source: k8s.io/kubernetes/pkg/controller/nodeipam/ipam, range_allocator.go.
const (
	reasonNotAvailable     = "CIDRNotAvailable"
	reasonAssignmentFailed = "CIDRAssignmentFailed"
	reasonFillingUp        = "CIDRRangeFillingUp"
	reasonShared           = "PodCIDRShared"
)

// actionAllocate is the action of all Events of the controller.
const actionAllocate = "AllocatePodCIDR"

// status records an Event in upstream's words, with a detail after them.
// Source: k8s.io/kubernetes/pkg/controller/util/node, RecordNodeStatusChange.
func (r *reconciler) status(node *corev1.Node, reason string, detail any) {
	r.recorder.Normal(node, reason, actionAllocate, "Node %s status is now: %s: %v", node.Name, reason, detail)
}

// fillingUp reports that a pool has reached a level, on the Node that got the last range.
func (r *reconciler) fillingUp(node *corev1.Node, u usage) {
	r.recorder.Warning(node, reasonFillingUp, actionAllocate, "%s; Nodes beyond the last one get none", u)
	r.log.Warn("a network of --cluster-cidr is filling up; Nodes beyond its last range get none", "network", u.network.String(), "used", u.used, "ranges", u.all)
}
