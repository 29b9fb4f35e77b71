// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// playPod brings a Pod to the state that is due, and returns when the next one is.
func (s *simulation) playPod(ctx context.Context, name types.NamespacedName) (wake time.Time, err error) {
	for {
		state, pod, node, ok := s.store.pod(name)
		if !ok {
			return time.Time{}, nil
		}
		if wake, played, err := s.stages.playPod(ctx, state, pod); played || err != nil {
			return wake, err
		}
		does, problems := behaviorOf(pod)
		does.failing = func(container string, run, first int32) bool {
			return s.store.failsFirst(state, container, run, first)
		}
		s.tell(ctx, state, pod, problems)
		does.unprepared = s.store.unprepared(pod)
		s.tellUnprepared(ctx, state, pod, does.unprepared)
		waits, due := s.mount(ctx, state, pod)
		does.unprepared = cmp.Or(does.unprepared, waits)
		where, err := s.store.network(pod, node)
		if err != nil {
			return time.Time{}, fmt.Errorf("giving the pod an address: %w", err)
		}

		next := s.kubelet.step(pod, does, where, state.memo, time.Now())
		switch {
		case next.remove:
			return time.Time{}, s.removePod(ctx, pod)
		case next.status == nil:
			return earlier(next.wake, due), nil
		}
		changed, err := s.writePod(ctx, state, pod, next.status)
		if err != nil || !changed {
			return earlier(next.wake, due), err
		}
		for _, e := range next.events {
			s.event(ctx, reference("Pod", pod), e)
		}
	}
}

// earlier returns the earlier one of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// writePod writes the status and takes over the answer. It reports false if the
// server took it and the Pod is as it was, so that a difference that the server
// does not keep is not written for ever; and if the Pod is gone.
func (s *simulation) writePod(ctx context.Context, state *podState, pod *corev1.Pod, status *corev1.PodStatus) (changed bool, err error) {
	write := *pod
	write.Status = *status
	api := s.client.CoreV1().Pods(pod.Namespace)
	result, err := api.UpdateStatus(ctx, &write, metav1.UpdateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil // the watch will show it
	case apierrors.IsConflict(err):
		// Another client was faster. What they wrote may come late by the watch.
		live, err := api.Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading the pod after a conflict: %w", err)
		}
		s.stages.trim(live)
		return s.store.putPod(live), nil
	case err != nil:
		return false, fmt.Errorf("writing the pod's status: %w", err)
	}
	s.stages.trim(result)
	s.store.updatePod(state, result)
	return newer(result, pod), nil
}

// removePod deletes an ended Pod without grace. Where finalizers hold it, it stays until
// they are gone, and then the server removes it.
func (s *simulation) removePod(ctx context.Context, pod *corev1.Pod) error {
	err := s.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)),
		Preconditions:      &metav1.Preconditions{UID: &pod.UID},
	})
	// A conflict is the UID's: the name belongs to another Pod already.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("removing the pod: %w", err)
	}
	return nil
}

// tell logs what is wrong with the annotations of a Pod, once.
func (s *simulation) tell(ctx context.Context, state *podState, pod *corev1.Pod, problems []string) {
	all := strings.Join(problems, "\n")
	if all == state.reported {
		return
	}
	state.reported = all
	for _, problem := range problems {
		s.log.Warn("a Pod has an annotation that cannot be simulated", "pod", pod.Namespace+"/"+pod.Name, "problem", problem)
		s.event(ctx, reference("Pod", pod), podEvent{corev1.EventTypeWarning, "InvalidSimulation", problem})
	}
}
