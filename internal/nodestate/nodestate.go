// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodestate

import corev1 "k8s.io/api/core/v1"

// Condition returns the condition of a type, or nil. It is part of the Node.
func Condition(node *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == kind {
			return c
		}
	}
	return nil
}

// Ready reports whether a Node says that it is ready.
func Ready(node *corev1.Node) bool {
	c := Condition(node, corev1.NodeReady)
	return c != nil && c.Status == corev1.ConditionTrue
}
