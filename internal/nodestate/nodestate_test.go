// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodestate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestANodeIsReadyIfItSaysSo(t *testing.T) {
	for status, want := range map[corev1.ConditionStatus]bool{
		corev1.ConditionTrue: true, corev1.ConditionFalse: false, corev1.ConditionUnknown: false,
	} {
		node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: status},
		}}}
		if got := Ready(node); got != want {
			t.Errorf("with the condition %s: %t", status, got)
		}
		if c := Condition(node, corev1.NodeReady); c != &node.Status.Conditions[1] {
			t.Errorf("the condition is %v", c)
		}
	}
	if node := new(corev1.Node); Ready(node) || Condition(node, corev1.NodeReady) != nil {
		t.Error("a Node without conditions says that it is ready")
	}
}
