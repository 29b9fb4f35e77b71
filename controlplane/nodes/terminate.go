// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// terminate ends a Pod that is being deleted: not ready at once, ended when the
// grace period is over. The next look finds the phase final and removes the Pod;
// the order matters to Jobs, which count Pods by their final phase and hold them
// by a finalizer until they have.
func (p *pass) terminate() {
	grace := time.Duration(*p.pod.DeletionGracePeriodSeconds) * time.Second
	if p.grace >= 0 {
		grace = min(grace, p.grace)
	}
	p.status.InitContainerStatuses = align(p.status.InitContainerStatuses, p.pod.Spec.InitContainers)
	p.status.ContainerStatuses = align(p.status.ContainerStatuses, p.pod.Spec.Containers)

	// The moment is that of the first look: the deletion timestamp is the end of
	// the unshortened period and, like all times of the API, in whole seconds.
	since := p.memo.first("terminate", p.now)
	if p.anyRunning() && p.due(since.Add(grace)) {
		for i := range p.status.ContainerStatuses {
			p.status.ContainerStatuses[i].Ready = false
		}
		return
	}

	code := int32(exitTerminated)
	if grace == 0 {
		code = exitKilled
	}
	p.stop(code)
	p.status.Phase = corev1.PodSucceeded
	for i := range p.status.ContainerStatuses {
		if p.status.ContainerStatuses[i].State.Terminated.ExitCode != 0 {
			p.status.Phase = corev1.PodFailed
		}
	}
}

func (p *pass) anyRunning() bool {
	for _, statuses := range [][]corev1.ContainerStatus{p.status.InitContainerStatuses, p.status.ContainerStatuses} {
		for i := range statuses {
			if statuses[i].State.Running != nil {
				return true
			}
		}
	}
	return false
}

// stop ends all containers. Those that never ran are given the state that the
// kubelet gives to containers it cannot find (status manager, TerminatePod).
func (p *pass) stop(code int32) {
	p.status.ContainerStatuses = align(p.status.ContainerStatuses, p.pod.Spec.Containers)
	for i := range p.status.ContainerStatuses {
		s := &p.status.ContainerStatuses[i]
		switch {
		case s.State.Running != nil:
			p.end(s, code)
		case s.State.Terminated != nil:
		case s.LastTerminationState.Terminated != nil:
			s.State, s.LastTerminationState = s.LastTerminationState, corev1.ContainerState{}
		default:
			s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode:   exitKilled,
				Reason:     "ContainerStatusUnknown",
				Message:    "The container could not be located when the pod was terminated",
				FinishedAt: metav1.NewTime(p.now),
			}}
			s.Ready, s.Started = false, new(false)
		}
	}
	p.stopOthers(code)
}

// stopOthers ends the containers that do not count for the phase: sidecars, which outlive
// all others, and an init container that still runs, with code.
func (p *pass) stopOthers(code int32) {
	for i := range p.status.InitContainerStatuses {
		s := &p.status.InitContainerStatuses[i]
		switch {
		case s.State.Running == nil:
		case sidecar(&p.pod.Spec.InitContainers[i]):
			p.end(s, 0)
		default:
			p.end(s, code)
		}
	}
	for i := range p.status.EphemeralContainerStatuses {
		if s := &p.status.EphemeralContainerStatuses[i]; s.State.Running != nil {
			p.end(s, exitKilled)
		}
	}
}
