// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// run is one run of a container of a Pod; the first has the number 0.
type run struct {
	container string
	number    int32
}

// failsFirst reports whether a run is one of the first runs of its container, which fail,
// and counts it. The runs of a Pod's container count, and for a Pod of a Job also those
// of the other Pods of the Job, or of its index: a Job retries with another Pod. Pods of
// other owners are retried by restarts, so each of them counts for itself.
//
// What one Pod was answered stays so. The count of two Pods that end at the same time is
// exact, because the answer counts before it is written.
func (s *store) failsFirst(state *podState, container string, number, first int32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	this := run{container, number}
	if fails, decided := state.failed[this]; decided {
		return fails
	}
	var failures int32
	for _, other := range s.pods {
		if other == state || retriesOf(state.object, other.object) {
			failures += other.failures(container)
		}
	}
	if state.failed == nil {
		state.failed = map[run]bool{}
	}
	state.failed[this] = failures < first
	return failures < first
}

// failures returns how many runs of a container have failed. The status knows it too, of
// the runs before a restart of the simulation.
func (p *podState) failures(container string) int32 {
	var decided int32
	for run, failed := range p.failed {
		if failed && run.container == container {
			decided++
		}
	}
	return max(decided, statedFailures(p.object, container))
}

// statedFailures takes each restart for a failure.
func statedFailures(pod *corev1.Pod, container string) int32 {
	s := statusOf(pod.Status.ContainerStatuses, container)
	if s == nil {
		s = statusOf(pod.Status.InitContainerStatuses, container)
	}
	if s == nil {
		return 0
	}
	end := s.State.Terminated
	if s.State.Waiting != nil {
		end = s.LastTerminationState.Terminated
	}
	if end != nil && end.ExitCode != 0 {
		return s.RestartCount + 1
	}
	return s.RestartCount
}

// retriesOf reports whether two Pods are of one Job, and of the same index of it.
func retriesOf(a, b *corev1.Pod) bool {
	return ownedByJob(a) && ownedByJob(b) &&
		metav1.GetControllerOfNoCopy(a).UID == metav1.GetControllerOfNoCopy(b).UID &&
		a.Annotations[batchv1.JobCompletionIndexAnnotation] == b.Annotations[batchv1.JobCompletionIndexAnnotation]
}
