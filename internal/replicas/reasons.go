// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controller"
)

// CodeUnschedulable is the code of the reason that Pods have no node.
const CodeUnschedulable = "PodsUnschedulable"

// unschedulable reports whether the scheduler has found no node for a Pod, and returns its message.
func unschedulable(pod *corev1.Pod) (message string, yes bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Message, c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
		}
	}
	return "", false
}

// nodeFound reports whether the scheduler has begun or ceased to find no node for a Pod.
func nodeFound(before, after *corev1.Pod) bool {
	_, without := unschedulable(before)
	_, still := unschedulable(after)
	return without != still
}

// reasons returns why the Pods are not all ready, as far as the owner's Pods say it.
func reasons(pods []*corev1.Pod) []controller.Reason {
	n, first := 0, ""
	for _, pod := range pods {
		if message, yes := unschedulable(pod); yes {
			if n++; n == 1 || message < first {
				first = message
			}
		}
	}
	if n == 0 {
		return nil
	}
	return []controller.Reason{{Code: CodeUnschedulable, Text: "{count} of {pods} {pods?Pod has|Pods have} no node: {message}",
		Params: controller.With("count", n, "pods", len(pods), "message", first), Ends: "the scheduler finds a node"}}
}
