// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubelet decides what becomes of a Pod. It does no IO and keeps no state: what
// it decides follows from the Pod, its memo and the time.
type kubelet struct {
	grace      time.Duration // a grace period is at most this long; negative is no limit
	backoff    time.Duration // before the second restart of a container; doubles with each
	maxBackoff time.Duration
}

// network is where a Pod lives.
type network struct {
	hostIPs []string
	podIPs  []string
}

// step is the next thing that happens to a Pod. Where it has a status, the next
// look comes right after that has been written; wake is for where it has none.
type step struct {
	status *corev1.PodStatus // to be written; nil if it is as it should be
	remove bool              // the Pod has ended and can leave the API
	wake   time.Time         // when to look again if nothing happens before; zero is never
	events []podEvent
}

type podEvent struct {
	kind    string // corev1.EventTypeNormal or EventTypeWarning
	reason  string
	message string
}

// pass is one step of one Pod. It changes status and collects the rest.
type pass struct {
	kubelet
	pod    *corev1.Pod
	status *corev1.PodStatus
	memo   memo
	now    time.Time
	does   behavior
	out    step
}

// step computes the next state of a Pod, which it does not change.
func (k kubelet) step(pod *corev1.Pod, does behavior, where network, m memo, now time.Time) step {
	if ended(pod.Status.Phase) {
		// A grace period of 0 is the sign that the kubelet has done its part and
		// only finalizers are waited for.
		return step{remove: pod.DeletionTimestamp != nil && *pod.DeletionGracePeriodSeconds != 0}
	}

	p := &pass{kubelet: k, pod: pod, status: pod.Status.DeepCopy(), memo: m, now: now, does: does}
	if does.reject != "" && pod.Status.StartTime == nil && pod.DeletionTimestamp == nil {
		p.reject(does.reject)
		p.out.status = p.status
		return p.out
	}
	p.settle(where)
	if pod.DeletionTimestamp != nil {
		p.terminate()
	} else {
		p.run()
	}
	p.status.ObservedGeneration = pod.Generation
	p.conditions()

	if !apiequality.Semantic.DeepEqual(&pod.Status, p.status) {
		p.out.status = p.status
	}
	return p.out
}

func ended(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// settle gives the Pod its addresses and its start time.
func (p *pass) settle(where network) {
	if len(where.hostIPs) > 0 {
		p.status.HostIP = where.hostIPs[0]
		p.status.HostIPs = nil
		for _, ip := range where.hostIPs {
			p.status.HostIPs = append(p.status.HostIPs, corev1.HostIP{IP: ip})
		}
	}
	if p.status.PodIP == "" && len(where.podIPs) > 0 {
		p.status.PodIP = where.podIPs[0]
		p.status.PodIPs = nil
		for _, ip := range where.podIPs {
			p.status.PodIPs = append(p.status.PodIPs, corev1.PodIP{IP: ip})
		}
	}
	if p.status.StartTime == nil {
		p.status.StartTime = new(metav1.NewTime(p.now))
		p.memo.note("start", p.now)
	}
}

// run takes the containers of a living Pod as far as they are due.
func (p *pass) run() {
	start := p.memo.exact("start", *p.status.StartTime)
	if limit := p.pod.Spec.ActiveDeadlineSeconds; limit != nil {
		deadline := start.Add(time.Duration(*limit) * time.Second)
		if !p.due(deadline) {
			p.stop(exitTerminated)
			p.status.Phase = corev1.PodFailed
			p.status.Reason = "DeadlineExceeded"
			p.status.Message = "Pod was active on the node longer than the specified deadline"
			return
		}
	}

	begun := !p.due(start.Add(p.does.start.of(p.pod.UID, "start", 0))) && p.does.unprepared == ""
	initialized := p.initContainers(begun)
	p.containers(begun && initialized)
	p.ephemeralContainers()

	p.status.Phase = p.phase(initialized)
	if ended(p.status.Phase) {
		p.stopOthers(exitTerminated)
	}
}

// due reports whether t is still to come, and if so requests the next step for then.
func (p *pass) due(t time.Time) bool {
	if !p.now.Before(t) {
		return false
	}
	p.wakeAt(t)
	return true
}

func (p *pass) wakeAt(t time.Time) {
	if p.out.wake.IsZero() || t.Before(p.out.wake) {
		p.out.wake = t
	}
}

func (p *pass) warn(reason, message string) {
	p.out.events = append(p.out.events, podEvent{corev1.EventTypeWarning, reason, message})
}

// phase is the kubelet's rule (getPhase in pkg/kubelet of Kubernetes 1.37).
func (p *pass) phase(initialized bool) corev1.PodPhase {
	if p.initFailed() {
		return corev1.PodFailed
	}
	var waiting, running, stopped, failed int
	for i := range p.status.ContainerStatuses {
		s := &p.status.ContainerStatuses[i]
		end := s.State.Terminated
		switch {
		case s.State.Running != nil:
			running++
			continue
		case end == nil && s.LastTerminationState.Terminated == nil:
			waiting++
			continue
		case end == nil:
			end = s.LastTerminationState.Terminated
		}
		stopped++
		if end.ExitCode != 0 {
			failed++
		}
	}
	switch {
	case !initialized || waiting > 0:
		return corev1.PodPending
	case running > 0 || p.restarts():
		return corev1.PodRunning
	case failed > 0:
		return corev1.PodFailed
	case stopped > 0:
		return corev1.PodSucceeded
	}
	return corev1.PodPending
}

// restarts reports whether a container that has ended will run again.
func (p *pass) restarts() bool {
	for i := range p.pod.Spec.Containers {
		c := &p.pod.Spec.Containers[i]
		s := statusOf(p.status.ContainerStatuses, c.Name)
		if s.State.Waiting != nil || s.State.Terminated != nil && p.restart(c, s.State.Terminated.ExitCode) {
			return true
		}
	}
	return false
}
