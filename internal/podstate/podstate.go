// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Final reports whether no other phase follows.
func Final(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// Ended reports whether all containers of a Pod have ended and will not restart.
func Ended(pod *corev1.Pod) bool { return Final(pod.Status.Phase) }

// Active reports whether a Pod counts as a replica of its owner: it has not ended and is
// not being deleted.
func Active(pod *corev1.Pod) bool { return !Ended(pod) && pod.DeletionTimestamp == nil }

// Terminating reports whether a Pod is being deleted and may still run.
func Terminating(pod *corev1.Pod) bool { return !Ended(pod) && pod.DeletionTimestamp != nil }

// Condition returns the condition of a type, or nil. It is part of the Pod.
func Condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == kind {
			return c
		}
	}
	return nil
}

// Ready reports whether a Pod says that it is ready.
func Ready(pod *corev1.Pod) bool {
	_, ready := ReadySince(pod)
	return ready
}

// ReadySince reports whether a Pod is ready, and since when it is or is not. The time is
// zero if the Pod does not say.
func ReadySince(pod *corev1.Pod) (time.Time, bool) {
	if c := Condition(pod, corev1.PodReady); c != nil {
		return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
	}
	return time.Time{}, false
}
