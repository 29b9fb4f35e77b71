// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Exit codes of processes that are ended from outside: 128 and the signal.
const (
	exitKilled     = 128 + 9
	exitTerminated = 128 + 15
)

// containers takes each container one transition further.
func (p *pass) containers(initialized bool) {
	p.status.ContainerStatuses = align(p.status.ContainerStatuses, p.pod.Spec.Containers)
	for i := range p.pod.Spec.Containers {
		c, s := &p.pod.Spec.Containers[i], &p.status.ContainerStatuses[i]
		switch {
		case s.State.Running != nil:
			p.keep(c, s)
		case s.State.Terminated != nil:
			p.ended(c, s)
		case backsOff(s):
			p.backOff(c, s)
		case !initialized && len(p.pod.Spec.InitContainers) > 0:
			p.wait(s, "PodInitializing", "")
		case !initialized:
			p.wait(s, "ContainerCreating", "")
		case p.pull(c, s):
			p.start(c, s)
			p.probe(s)
		}
	}
}

// ephemeralContainers starts what kubectl debug adds. They are never ready.
func (p *pass) ephemeralContainers() {
	for i := range p.pod.Spec.EphemeralContainers {
		c := (*corev1.Container)(&p.pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		if statusOf(p.status.EphemeralContainerStatuses, c.Name) == nil {
			s := corev1.ContainerStatus{Name: c.Name}
			p.start(c, &s)
			s.Started = nil
			p.status.EphemeralContainerStatuses = append(p.status.EphemeralContainerStatuses, s)
		}
	}
}

// keep looks after a running container.
func (p *pass) keep(c *corev1.Container, s *corev1.ContainerStatus) {
	if s.Image != c.Image {
		// The image is the one thing of a container that may be replaced in a living Pod;
		// the kubelet stops the container and starts it again.
		p.end(s, 0)
		p.again(c, s)
		return
	}
	s.Resources, s.AllocatedResources = reported(c)
	if code, over := p.over(c, s); over {
		p.end(s, code)
		_, init := containerOf(p.pod, c.Name)
		s.Ready = code == 0 && init && !sidecar(c) // says, of an init container, that it has succeeded
		return
	}
	p.probe(s)
}

// probe decides whether a running container is ready.
func (p *pass) probe(s *corev1.ContainerStatus) {
	if c, init := containerOf(p.pod, s.Name); init {
		s.Ready = sidecar(c) // as soon as it runs
		return
	}
	s.Ready = false
	if p.does.ready.never {
		return
	}
	ready := p.memo.exact("run/"+s.Name, s.State.Running.StartedAt).
		Add(p.does.ready.of(p.pod.UID, "ready/"+s.Name, s.RestartCount))
	if p.due(ready) {
		return
	}
	steady := p.does.unready.never ||
		p.due(ready.Add(p.does.unready.of(p.pod.UID, "unready/"+s.Name, s.RestartCount)))
	s.Ready = steady && !p.flipped(s, ready)
}

// ended decides what becomes of a container that has ended: the first restart
// follows at once, as a kubelet does it, later ones wait.
func (p *pass) ended(c *corev1.Container, s *corev1.ContainerStatus) {
	switch end := s.State.Terminated; {
	case !p.restart(c, end.ExitCode):
	case s.RestartCount == 0:
		p.again(c, s)
	default:
		s.LastTerminationState = s.State
		wait := p.waitFor(s.RestartCount)
		message := fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
			wait, c.Name, p.pod.Name, p.pod.Namespace, p.pod.UID)
		p.wait(s, "CrashLoopBackOff", message)
		p.warn("BackOff", fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)", c.Name, p.pod.Name, p.pod.Namespace, p.pod.UID))
	}
}

// backOff restarts a container when its time has come.
func (p *pass) backOff(c *corev1.Container, s *corev1.ContainerStatus) {
	end := p.status.StartTime.Time
	if last := s.LastTerminationState.Terminated; last != nil {
		end = p.memo.exact("end/"+c.Name, last.FinishedAt)
	}
	if !p.due(end.Add(p.waitFor(s.RestartCount))) && p.pull(c, s) {
		p.again(c, s)
	}
}

// waitFor returns how long a container that was restarted so often waits now.
func (p *pass) waitFor(restarts int32) time.Duration {
	wait := p.backoff
	for ; restarts > 1 && wait < p.maxBackoff; restarts-- {
		wait *= 2
	}
	return min(wait, p.maxBackoff)
}

// restart reports whether a container that ended with code is to run again. The
// policy of the container, where it has one, comes before that of the Pod.
func (p *pass) restart(c *corev1.Container, code int32) bool {
	policy := p.pod.Spec.RestartPolicy
	if c.RestartPolicy != nil {
		policy = corev1.RestartPolicy(*c.RestartPolicy)
	}
	return policy == corev1.RestartPolicyAlways || policy == corev1.RestartPolicyOnFailure && code != 0
}

// wait puts the container in a waiting state and reports whether that is new.
func (p *pass) wait(s *corev1.ContainerStatus, reason, message string) bool {
	if s.State.Waiting != nil && s.State.Waiting.Reason == reason {
		return false
	}
	s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	s.Ready, s.Started = false, new(false)
	return true
}

// start makes the container run. It is not ready yet.
func (p *pass) start(c *corev1.Container, s *corev1.ContainerStatus) {
	s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(p.now)}}
	s.Started, s.Ready = new(true), false
	s.Image = c.Image
	s.ImageID = "sim://sha256:" + digest(c.Image)
	s.ContainerID = "sim://" + digest(fmt.Sprintf("%s/%s/%d", p.pod.UID, c.Name, s.RestartCount))
	s.Resources, s.AllocatedResources = reported(c)
	p.memo.note("run/"+c.Name, p.now)
	delete(p.memo, "pull/"+c.Name)
}

// again starts a container that ran before.
func (p *pass) again(c *corev1.Container, s *corev1.ContainerStatus) {
	if s.State.Terminated != nil {
		s.LastTerminationState = s.State
	}
	s.RestartCount++
	p.start(c, s)
	p.probe(s)
}

// end ends a running container.
func (p *pass) end(s *corev1.ContainerStatus, code int32) {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode:    code,
		Reason:      reason,
		StartedAt:   s.State.Running.StartedAt,
		FinishedAt:  metav1.NewTime(p.now),
		ContainerID: s.ContainerID,
	}}
	s.Ready, s.Started = false, new(false)
	p.memo.note("end/"+s.Name, p.now)
}

// reported is what a container's status says of its resources, so that an
// in-place resize is seen to have happened.
func reported(c *corev1.Container) (*corev1.ResourceRequirements, corev1.ResourceList) {
	if len(c.Resources.Requests) == 0 && len(c.Resources.Limits) == 0 {
		return nil, nil
	}
	return &corev1.ResourceRequirements{
		Requests: c.Resources.Requests.DeepCopy(),
		Limits:   c.Resources.Limits.DeepCopy(),
	}, c.Resources.Requests.DeepCopy()
}

func sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// align returns one status for each container, in the order of the containers.
func align(statuses []corev1.ContainerStatus, containers []corev1.Container) []corev1.ContainerStatus {
	if len(containers) == 0 {
		return nil
	}
	out := make([]corev1.ContainerStatus, len(containers))
	for i := range containers {
		if s := statusOf(statuses, containers[i].Name); s != nil {
			out[i] = *s
		} else {
			out[i] = corev1.ContainerStatus{Name: containers[i].Name, Image: containers[i].Image}
		}
	}
	return out
}

func statusOf(statuses []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
