// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/podstate"
)

// firstStart is how long a Pod whose containers run has for becoming ready, before it counts as
// one that never will.
// Source: the default of progressDeadlineSeconds of a Deployment, after which a rollout counts as
// failed, k8s.io/kubernetes/pkg/apis/apps/v1, SetDefaults_Deployment.
const firstStart = 10 * time.Minute

// neverReady reports whether a Pod has not been ready at any time, as far as its status proves it.
//
// A Pod is ready while all its containers are. So it has never been if one of them has never
// started, or if the condition Ready is as old as the status: the kubelet writes the condition and
// the start time at the same moment, with a resolution of a second, and changes the time of the
// condition only with its status. A Pod of which the status proves nothing counts as one that was
// ready.
func neverReady(pod *corev1.Pod) bool {
	ready := podstate.Condition(pod, corev1.PodReady)
	switch {
	case ready == nil:
		return pod.Status.Phase != corev1.PodRunning
	case ready.Status == corev1.ConditionTrue:
		return false
	case lacksContainer(pod):
		return true
	}
	begin := pod.Status.StartTime
	return begin != nil && !ready.LastTransitionTime.IsZero() && ready.LastTransitionTime.Sub(begin.Time) <= time.Second
}

// lacksContainer reports whether a container of a Pod has never started.
func lacksContainer(pod *corev1.Pod) bool {
	if len(pod.Status.ContainerStatuses) < len(pod.Spec.Containers) {
		return pod.Status.Phase == corev1.PodPending
	}
	for i := range pod.Status.ContainerStatuses {
		if !hasStarted(&pod.Status.ContainerStatuses[i]) {
			return true
		}
	}
	return false
}

func hasStarted(c *corev1.ContainerStatus) bool {
	return c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil || c.RestartCount > 0
}

// hopelessIn returns how long it takes until a Pod that was never ready counts as one that does
// not become ready by itself; 0 is now.
//
// A Pod of which nothing runs, such as one without a node or without its image, loses nothing by a
// deletion. A container that waits for its next start after it has failed, or that has ended, is
// interrupted anyway. A container that runs may be filling its volume, and a process that is interrupted
// in that may leave data that its successor cannot read. It may also be a member that votes already
// while its probe is wrong. Such a Pod has the time of [firstStart], from the start of its youngest
// container that has failed before, or of the Pod.
func hopelessIn(pod *corev1.Pod, now time.Time) time.Duration {
	var since *metav1.Time
	for _, containers := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range containers {
			c := &containers[i]
			switch running := c.State.Running; {
			case hasFailed(c) && running == nil:
				return 0
			case running == nil:
			case !hasFailed(c):
				since = later(since, pod.Status.StartTime)
			default:
				since = later(since, &running.StartedAt)
			}
		}
	}
	if since == nil {
		return 0
	}
	return max(since.Add(firstStart).Sub(now), 0)
}

// later returns the later of two times, which may be nil.
func later(a, b *metav1.Time) *metav1.Time {
	if a == nil || b != nil && b.After(a.Time) {
		return b
	}
	return a
}

// hasFailed reports whether a container has ended with an error, now or before.
func hasFailed(c *corev1.ContainerStatus) bool {
	ended := c.State.Terminated
	return c.RestartCount > 0 || c.LastTerminationState.Terminated != nil || ended != nil && ended.ExitCode != 0
}
