// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAPodIsActiveOrTerminatingOrHasEnded(t *testing.T) {
	for phase, ended := range map[corev1.PodPhase]bool{
		"": false, corev1.PodPending: false, corev1.PodRunning: false, corev1.PodUnknown: false,
		corev1.PodSucceeded: true, corev1.PodFailed: true,
	} {
		for _, deleting := range []bool{false, true} {
			pod := &corev1.Pod{Status: corev1.PodStatus{Phase: phase}}
			if deleting {
				pod.DeletionTimestamp = new(metav1.Now())
			}
			active, terminating := !ended && !deleting, !ended && deleting
			if Active(pod) != active || Terminating(pod) != terminating || Ended(pod) != ended {
				t.Errorf("%q, being deleted: %t: active %t, terminating %t, ended %t", phase, deleting, Active(pod), Terminating(pod), Ended(pod))
			}
		}
	}
}

func TestReadinessIsThatOfTheConditionReady(t *testing.T) {
	since := time.Unix(1000, 0)
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1, 0)},
	}}}
	if at, ready := ReadySince(pod); ready || !at.IsZero() || Ready(pod) {
		t.Errorf("without the condition: %s, %t", at, ready)
	}
	for status, want := range map[corev1.ConditionStatus]bool{
		corev1.ConditionTrue: true, corev1.ConditionFalse: false, corev1.ConditionUnknown: false,
	} {
		pod.Status.Conditions = append(pod.Status.Conditions[:1:1], corev1.PodCondition{
			Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(since),
		})
		if at, ready := ReadySince(pod); ready != want || !at.Equal(since) || Ready(pod) != want {
			t.Errorf("%s: ready since %s: %t", status, at, ready)
		}
	}
}
