// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller/selectors"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
)

// wakes returns the mapping from a Pod to the owners, of one kind, that are to be
// reconciled: the one that manages it, or those that select it if none does.
//
// An owner is found by the name in the reference. That it is the one with the UID is
// for the run to see, which looks for its Pods by UID.
func wakes[T object.Object](kind object.Resource, owners *selectors.Index[T]) func(cache.Item[*corev1.Pod], func(object.Key)) {
	return func(pod cache.Item[*corev1.Pod], add func(object.Key)) {
		m := pod.Meta()
		if owner := owner(m, kind); !owner.IsZero() {
			add(owner)
		}
		if m.Controller() == nil && !m.Deleting() {
			for key := range owners.Selecting(m.Namespace, m.Labels) {
				add(key)
			}
		}
	}
}

// owner returns the key of a Pod's managing controller if it is of a kind, or else
// the zero Key.
func owner(m object.Meta, kind object.Resource) object.Key {
	ref := m.Controller()
	if ref == nil || ref.Kind != kind.Kind {
		return object.Key{}
	}
	if version, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || version.Group != kind.Group {
		return object.Key{}
	}
	return object.Key{Namespace: m.Namespace, Name: ref.Name}
}

// matters chooses the changes of Pods for which these controllers run: of labels,
// managing controller, and, where there is one, of deletion, whether it has ended,
// readiness, and whether the scheduler finds a node, which is a reason of the owner. What only ranks Pods is read when they are ranked.
func matters(e cache.Event[*corev1.Pod]) bool {
	if e.Kind != cache.Updated || !sameClaim(e.Old.Meta(), e.New.Meta()) {
		return true
	}
	if e.New.Meta().Controller() == nil {
		return false
	}
	if e.Old.Deleting() != e.New.Deleting() {
		return true
	}
	before, err := e.Old.Object()
	if err != nil {
		return true
	}
	after, err := e.New.Object()
	if err != nil {
		return true
	}
	sinceBefore, readyBefore := podstate.ReadySince(before)
	sinceAfter, readyAfter := podstate.ReadySince(after)
	if nodeFound(before, after) {
		return true
	}
	return podstate.Ended(before) != podstate.Ended(after) || readyBefore != readyAfter || readyAfter && !sinceBefore.Equal(sinceAfter)
}

// sameClaim reports whether two states of a Pod are the same to those who may want
// it.
func sameClaim(old, now object.Meta) bool {
	return controllerUID(old) == controllerUID(now) && old.Labels == now.Labels
}

func controllerUID(m object.Meta) types.UID {
	if ref := m.Controller(); ref != nil {
		return ref.UID
	}
	return ""
}
