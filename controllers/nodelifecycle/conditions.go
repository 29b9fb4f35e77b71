// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/nodestate"
)

// kubeletConditions are those that the kubelet posts. NetworkUnavailable is not
// among them: the network plugin posts it.
// Source: k8s.io/kubernetes/pkg/controller/nodelifecycle, tryUpdateNodeHealth; the
// reasons and messages too.
var kubeletConditions = [...]corev1.NodeConditionType{
	corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure,
}

const (
	reasonNever    = "NodeStatusNeverUpdated"
	messageNever   = "Kubelet never posted node status."
	reasonStopped  = "NodeStatusUnknown"
	messageStopped = "Kubelet stopped posting node status."
)

// readyStatus returns the status of the node's Ready condition, "" if it has none.
func readyStatus(node *corev1.Node) corev1.ConditionStatus {
	if c := nodestate.Condition(node, corev1.NodeReady); c != nil {
		return c.Status
	}
	return ""
}

// allUnknown reports whether the node's conditions say already that nothing is known
// of it.
func allUnknown(node *corev1.Node) bool {
	for _, kind := range kubeletConditions {
		if c := nodestate.Condition(node, kind); c == nil || c.Status != corev1.ConditionUnknown {
			return false
		}
	}
	return true
}

// conditionsToTurn returns the conditions of a silent node that are to be written: those
// that do not have the status Unknown yet.
func conditionsToTurn(node *corev1.Node, now time.Time) []corev1.NodeCondition {
	var turned []corev1.NodeCondition
	for _, kind := range kubeletConditions {
		was := nodestate.Condition(node, kind)
		switch {
		case was == nil:
			turned = append(turned, corev1.NodeCondition{
				Type: kind, Status: corev1.ConditionUnknown, Reason: reasonNever, Message: messageNever,
				LastHeartbeatTime: node.CreationTimestamp, LastTransitionTime: metav1.NewTime(now),
			})
		case was.Status != corev1.ConditionUnknown:
			c := *was
			c.Status, c.Reason, c.Message = corev1.ConditionUnknown, reasonStopped, messageStopped
			c.LastTransitionTime = metav1.NewTime(now)
			turned = append(turned, c)
		}
	}
	return turned
}

// turn returns the patch of the status of this state of the node.
func turn(node *corev1.Node, conditions []corev1.NodeCondition) (client.Patch, error) {
	return client.StrategicPatch(map[string]any{
		// Had the kubelet posted meanwhile, it would not be silent.
		"metadata": map[string]any{"uid": node.UID, "resourceVersion": node.ResourceVersion},
		"status":   map[string]any{"conditions": conditions},
	})
}
