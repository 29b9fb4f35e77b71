// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import corev1 "k8s.io/api/core/v1"

// initContainers takes the init containers one transition further, each after the one
// before has succeeded, or has started if it is restartable, called a sidecar here. It
// reports whether the Pod is initialized.
func (p *pass) initContainers(begun bool) bool {
	p.status.InitContainerStatuses = align(p.status.InitContainerStatuses, p.pod.Spec.InitContainers)
	over := p.wasInitialized()
	done := begun
	for i := range p.pod.Spec.InitContainers {
		c, s := &p.pod.Spec.InitContainers[i], &p.status.InitContainerStatuses[i]
		if over && !sidecar(c) {
			continue // it is not run again
		}
		p.initContainer(c, s, done)
		if sidecar(c) {
			done = done && s.State.Running != nil
		} else {
			done = done && succeeded(s)
		}
	}
	return done || over
}

func (p *pass) initContainer(c *corev1.Container, s *corev1.ContainerStatus, isNext bool) {
	switch {
	case s.State.Running != nil:
		p.keep(c, s)
	case succeeded(s) && !sidecar(c):
	case s.State.Terminated != nil:
		p.ended(c, s)
	case backsOff(s):
		p.backOff(c, s)
	case !isNext:
		p.wait(s, "PodInitializing", "")
	case p.pull(c, s):
		p.start(c, s)
		p.keep(c, s) // most succeed at once
	}
}

// wasInitialized reports whether a container other than the init containers has run: the
// kubelet concludes from it that the init containers are done.
func (p *pass) wasInitialized() bool {
	for i := range p.status.ContainerStatuses {
		s := &p.status.ContainerStatuses[i]
		if s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil {
			return true
		}
	}
	return false
}

// initFailed reports whether an init container has failed and is not restarted.
func (p *pass) initFailed() bool {
	for i := range p.pod.Spec.InitContainers {
		c, s := &p.pod.Spec.InitContainers[i], &p.status.InitContainerStatuses[i]
		if end := s.State.Terminated; !sidecar(c) && end != nil && end.ExitCode != 0 && !p.restart(c, end.ExitCode) {
			return true
		}
	}
	return false
}

func succeeded(s *corev1.ContainerStatus) bool {
	return s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
}

func backsOff(s *corev1.ContainerStatus) bool {
	return s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff"
}
