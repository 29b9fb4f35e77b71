// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceendpoints

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
)

// Wakes adds the Services that select a Pod. It is the mapping of a controller.Watches, with
// the predicate Matters.
//
// Which Services there are is read after the Pod's change is in its store. A Service that
// does not exist yet, or not with this selector, is reconciled later by its own event.
func (s *Selection) Wakes(pod cache.Item[*corev1.Pod], add func(object.Key)) {
	for _, key := range s.selecting(pod) {
		add(key)
	}
}

// Matters chooses the changes of Pods that can be seen in endpoints: of a Pod that is or was
// an endpoint, and whose endpoint or Services have changed.
func (s *Selection) Matters(e cache.Event[*corev1.Pod]) bool {
	before := s.selectingState(e.Old)
	now := before
	if !e.Old.Exists() || !e.New.Exists() || e.Old.Labels() != e.New.Labels() {
		now = s.selectingState(e.New)
	}
	if len(before) == 0 && len(now) == 0 {
		return false
	}
	shown := shows(e)
	return (shown.before || shown.now) && (shown.differ || !slices.Equal(before, now))
}

// selectingState returns the Services that select a state of a Pod, none if there is no such
// state.
func (s *Selection) selectingState(pod cache.Item[*corev1.Pod]) []object.Key {
	if !pod.Exists() {
		return nil
	}
	return s.selecting(pod)
}

// change is what of a Pod's change can be seen in endpoints.
type change struct {
	before, now bool // it is an endpoint of the Services that select it
	differ      bool
}

func shows(e cache.Event[*corev1.Pod]) change {
	before, err := e.Old.Object()
	if err != nil && e.Old.Exists() {
		return change{true, true, true} // a run reports it
	}
	now, err := e.New.Object()
	if err != nil && e.New.Exists() {
		return change{true, true, true}
	}
	c := change{before: before != nil && Reachable(before), now: now != nil && Reachable(now)}
	c.differ = c.before != c.now || c.before && !sameEndpoint(before, now)
	return c
}

// sameEndpoint reports whether two states of a Pod make the same endpoints, apart
// from the Services that select them.
func sameEndpoint(a, b *corev1.Pod) bool {
	return a.UID == b.UID &&
		podstate.Ready(a) == podstate.Ready(b) &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		slices.Equal(a.Status.PodIPs, b.Status.PodIPs) &&
		a.Spec.NodeName == b.Spec.NodeName &&
		a.Spec.Hostname == b.Spec.Hostname && a.Spec.Subdomain == b.Spec.Subdomain
}
