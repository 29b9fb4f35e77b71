// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controller"
)

// Codes of the reasons why a node that is not ready has no NoExecute taint, so that its Pods stay.
const (
	codeAllDown   = "NoNodeIsReady"
	codeZoneStops = "ZoneStopsEviction"
	codeZoneRate  = "ZoneLimitsEviction"
)

// because states why a node that is not ready gets no NoExecute taint.
func (r *reconciler) because(ctx context.Context, node *corev1.Node, mode noExecute) {
	if conditionTaint(corev1.NodeReady, readyStatus(node)) == "" || mode == setNoExecute || mode == holdNoExecute && hasNoExecute(node.Spec.Taints) {
		return
	}
	name := zoneOf(node.Labels)
	state, rate, known := r.monitor.evictions(name)
	reason := controller.Reason{Ends: "more nodes are ready", Params: controller.With("zone", orNone(name), "rate", rate)}
	switch {
	case !known:
		return
	case state == zoneDown && rate == 0, mode == liftNoExecute:
		reason.Code, reason.Text = codeAllDown, "no node of the cluster is ready, so no node gets a NoExecute taint and all Pods stay"
	case state == zonePartlyDown && rate == 0:
		reason.Code, reason.Text = codeZoneStops, "too many nodes of its zone {zone} are not ready, so none of them gets a NoExecute taint and their Pods stay"
	default:
		reason.Code, reason.Text = codeZoneRate, "its zone {zone} gives {rate} {rate?node|nodes} a second a NoExecute taint, and the node waits for its turn"
		reason.Ends = "it is its turn, or it is ready"
	}
	controller.Because(ctx, reason)
}

// orNone names the zone of nodes without labels of one.
func orNone(zone string) string {
	if zone == "" {
		return "(none)"
	}
	return zone
}
