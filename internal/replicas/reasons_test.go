// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestPodsWithoutANodeAreAReason(t *testing.T) {
	without := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available: 3 Insufficient cpu."}}}}
	gated := without.DeepCopy()
	gated.Status.Conditions[0].Reason = corev1.PodReasonSchedulingGated
	if got := reasons([]*corev1.Pod{gated, readyPod(time.Hour)}); got != nil {
		t.Errorf("Pods that the scheduler does not look at give the reasons %v", got)
	}
	got := reasons([]*corev1.Pod{without, gated, without})
	want := "2 of 3 Pods have no node: 0/3 nodes are available: 3 Insufficient cpu. (until the scheduler finds a node)"
	if len(got) != 1 || got[0].Code != CodeUnschedulable || got[0].String() != want {
		t.Errorf("the reasons are %v, want %s: %s", got, CodeUnschedulable, want)
	}
}

// The owner is reconciled when the scheduler finds no node, and when it finds one after that.
func TestAnOwnerIsWokenByPodsWithoutANode(t *testing.T) {
	placement := func(status corev1.ConditionStatus, reason string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: status, Reason: reason}}}}
	}
	fresh, without, placed := &corev1.Pod{}, placement(corev1.ConditionFalse, corev1.PodReasonUnschedulable), placement(corev1.ConditionTrue, "")
	for _, c := range []struct {
		name          string
		before, after *corev1.Pod
		want          bool
	}{{"no node", fresh, without, true}, {"a node after all", without, placed, true}, {"a node at once", fresh, placed, false}} {
		if got := nodeFound(c.before, c.after); got != c.want {
			t.Errorf("%s: it wakes the owner %v, want %v", c.name, got, c.want)
		}
	}
}
