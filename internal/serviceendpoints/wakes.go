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

// Wakes adds the Services that are to be looked at because of a change of a Pod. It
// is the mapping of a controller.Watches.
//
// Which Services there are is read after the Pod's change is in its store. A Service
// that is not there yet, or not with this selector, comes later, and is looked at
// then for its own sake.
func (s *Selection) Wakes(e cache.Event[*corev1.Pod], add func(object.Key)) {
	var before, now []object.Key
	if e.Old.Exists() {
		before = s.selecting(e.Old.Meta())
	}
	if e.New.Exists() {
		if m := e.New.Meta(); e.Old.Exists() && e.Old.Meta().Labels == m.Labels {
			now = before
		} else {
			now = s.selecting(m)
		}
	}
	if len(before) == 0 && len(now) == 0 {
		return
	}
	shown := shows(e)
	if !shown.before && !shown.now {
		return
	}
	for _, key := range before {
		if shown.differ || !slices.Contains(now, key) {
			add(key)
		}
	}
	for _, key := range now {
		if !slices.Contains(before, key) {
			add(key)
		}
	}
}

// change is what of a Pod's change can be seen in endpoints.
type change struct {
	before, now bool // it is an endpoint of whoever selects it
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
// from who selects them.
func sameEndpoint(a, b *corev1.Pod) bool {
	return a.UID == b.UID &&
		podstate.Ready(a) == podstate.Ready(b) &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		slices.Equal(a.Status.PodIPs, b.Status.PodIPs) &&
		a.Spec.NodeName == b.Spec.NodeName &&
		a.Spec.Hostname == b.Spec.Hostname && a.Spec.Subdomain == b.Spec.Subdomain
}
