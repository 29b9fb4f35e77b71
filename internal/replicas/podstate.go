// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// isActive reports whether a Pod counts: it has not ended and is not being deleted.
func isActive(pod *corev1.Pod) bool { return !hasEnded(pod) && pod.DeletionTimestamp == nil }

// isTerminating reports whether a Pod is being deleted and may still run.
func isTerminating(pod *corev1.Pod) bool { return !hasEnded(pod) && pod.DeletionTimestamp != nil }

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// readySince reports whether a Pod is ready, and since when. The time is zero if the
// Pod does not say.
func readySince(pod *corev1.Pod) (time.Time, bool) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
		}
	}
	return time.Time{}, false
}
