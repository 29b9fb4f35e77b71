// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"maps"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
)

// GenerationChanged chooses the updates that change the spec of an object, and the update that
// begins its deletion. It leaves out updates of status and metadata. Of kinds that have no
// generations, such as ConfigMaps, it chooses all updates.
func GenerationChanged[T object.Object](e cache.Event[T]) bool {
	if e.Kind != cache.Updated {
		return true
	}
	now := e.New.Generation()
	return now == 0 || e.Old.Generation() != now || e.Old.Deleting() != e.New.Deleting()
}

// LabelsChanged chooses the updates that change labels.
func LabelsChanged[T object.Object](e cache.Event[T]) bool {
	return e.Kind != cache.Updated || e.Old.Labels() != e.New.Labels()
}

// AnnotationsChanged chooses the updates that change annotations. It does not decode the rest
// of the object.
func AnnotationsChanged[T object.Object](e cache.Event[T]) bool {
	if e.Kind != cache.Updated {
		return true
	}
	was, err := e.Old.Annotations()
	if err != nil {
		return true
	}
	now, err := e.New.Annotations()
	return err != nil || !maps.Equal(was, now)
}

// Stays chooses all events but deletions: those after which the object exists.
func Stays[T object.Object](e cache.Event[T]) bool { return e.Kind != cache.Deleted }

// Gone chooses the events that end an object: a deletion, or a replacement by another object
// of its name.
func Gone[T object.Object](e cache.Event[T]) bool {
	return e.Kind == cache.Deleted || e.Kind == cache.Replaced
}

// Later leaves out the objects that existed when the loop began to follow its informers, which is when its manager began to stand by. A loop
// that has stood by for long, while many objects changed, gets those too: which of them have come since is not known then.
func Later[T object.Object](e cache.Event[T]) bool { return !e.Initial }

// Selected returns a predicate that chooses the events of objects whose labels match, before
// or after the event. So it chooses the update after which an object does not match any more,
// and none of the later ones. A nil selector matches all.
func Selected[T object.Object](selector labels.Selector) controller.Predicate[T] {
	if selector == nil {
		selector = labels.Everything()
	}
	matches := func(i cache.Item[T]) bool { return i.Exists() && selector.Matches(i.Labels()) }
	return func(e cache.Event[T]) bool { return matches(e.New) || matches(e.Old) }
}

// Either returns a predicate that chooses an event if one of several predicates does.
func Either[T object.Object](predicates ...controller.Predicate[T]) controller.Predicate[T] {
	return func(e cache.Event[T]) bool {
		for _, p := range predicates {
			if p == nil || p(e) {
				return true
			}
		}
		return false
	}
}
