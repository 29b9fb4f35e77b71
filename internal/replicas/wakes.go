// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		if ref := pod.Controller(); ref != nil {
			if owner := owner(ref, pod.Key().Namespace, kind); !owner.IsZero() {
				add(owner)
			}
			return
		}
		if pod.Deleting() {
			return
		}
		for key := range owners.Selecting(pod.Key().Namespace, pod.Labels()) {
			add(key)
		}
	}
}

// owner returns the key of the managing controller of a Pod of a namespace if it is of a kind, or else
// the zero Key.
func owner(ref *metav1.OwnerReference, namespace string, kind object.Resource) object.Key {
	if ref.Kind != kind.Kind {
		return object.Key{}
	}
	if version, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || version.Group != kind.Group {
		return object.Key{}
	}
	return object.Key{Namespace: namespace, Name: ref.Name}
}

// matters chooses the changes of Pods for which these controllers run: of labels,
// managing controller, and, where there is one, of deletion, whether it has ended,
// readiness, and whether the scheduler finds a node, which is a reason of the owner. What only ranks Pods is read when they are ranked.
func matters(e cache.Event[*corev1.Pod]) bool {
	if e.Kind != cache.Updated || !sameClaim(e.Old, e.New) {
		return true
	}
	if e.New.Controller() == nil {
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
func sameClaim(old, now cache.Item[*corev1.Pod]) bool {
	return controllerUID(old) == controllerUID(now) && old.Labels() == now.Labels()
}

func controllerUID(pod cache.Item[*corev1.Pod]) types.UID {
	if ref := pod.Controller(); ref != nil {
		return ref.UID
	}
	return ""
}
