// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/internal/seconds"
)

// finishTime returns when a Pod ended, as well as its status says: the end of its last container,
// or the time at which it became not ready, or the time at which it was deleted, or that of its
// creation.
// Source: k8s.io/kubernetes/pkg/controller/job, getFinishedTime.
func finishTime(pod *corev1.Pod) time.Time {
	if at := lastEnd(pod); !at.IsZero() {
		return at
	}
	if since, ready := podstate.ReadySince(pod); isUnready(pod) && !ready && !since.IsZero() {
		return since
	}
	if pod.DeletionTimestamp != nil {
		grace := int64(0)
		if pod.DeletionGracePeriodSeconds != nil {
			grace = *pod.DeletionGracePeriodSeconds
		}
		return pod.DeletionTimestamp.Add(-seconds.Duration(grace))
	}
	return pod.CreationTimestamp.Time
}

// isUnready reports whether a Pod says that it is not ready. Unknown is neither.
func isUnready(pod *corev1.Pod) bool {
	c := podstate.Condition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionFalse
}

// lastEnd returns when the last container or sidecar ended, or the zero time if one has not.
func lastEnd(pod *corev1.Pod) time.Time {
	var last time.Time
	for i := range pod.Status.ContainerStatuses {
		ended := pod.Status.ContainerStatuses[i].State.Terminated
		if ended == nil || ended.FinishedAt.IsZero() {
			return time.Time{}
		}
		last = later(last, ended.FinishedAt.Time)
	}
	for i := range pod.Status.InitContainerStatuses {
		status := &pod.Status.InitContainerStatuses[i]
		if !isSidecar(pod, status.Name) {
			continue
		}
		if status.State.Terminated == nil || status.State.Terminated.FinishedAt.IsZero() {
			return time.Time{}
		}
		last = later(last, status.State.Terminated.FinishedAt.Time)
	}
	return last
}

func isSidecar(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
