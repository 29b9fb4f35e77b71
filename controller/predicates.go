// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// Predicate chooses the events that start a run. A nil Predicate is all. It is called by
// the goroutine that delivers the events of its source, one at a time, and must be quick;
// what it needs of the metadata is at hand without a decode (see [cache.Item]). Where it
// panics the event is taken as chosen: a run too many does no harm.
//
// [GenerationChanged], [LabelsChanged], [AnnotationsChanged] and [DeletionBegan] choose
// among updates alone. An object that comes, goes, or takes the place of another of its
// name is always chosen, and so is one that is looked at again because of [Resync]. Write
// them without brackets:
//
//	controller.For(pods, controller.GenerationChanged)
//
// Several predicates of one source must all choose an event; [Either] is for one of them.
type Predicate[T object.Object] func(cache.Event[T]) bool

// GenerationChanged chooses updates of what is wanted of an object, and leaves out those
// of its status and its metadata. That it is being deleted is such an update too. Updates
// of kinds that do not count generations, ConfigMaps say, are all chosen.
func GenerationChanged[T object.Object](e cache.Event[T]) bool {
	if e.Kind != cache.Updated {
		return true
	}
	was, now := e.Old.Meta(), e.New.Meta()
	return now.Generation == 0 || was.Generation != now.Generation || was.Deleting() != now.Deleting()
}

// LabelsChanged chooses updates of labels.
func LabelsChanged[T object.Object](e cache.Event[T]) bool {
	return e.Kind != cache.Updated || e.Old.Meta().Labels != e.New.Meta().Labels
}

// AnnotationsChanged chooses updates of annotations. It reads them, and nothing else of
// the object.
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

// DeletionBegan chooses the update that gives an object its deletion timestamp.
func DeletionBegan[T object.Object](e cache.Event[T]) bool {
	return e.Kind != cache.Updated || e.New.Meta().Deleting() && !e.Old.Meta().Deleting()
}

// Stays chooses whatever leaves an object to look at: all but deletions.
func Stays[T object.Object](e cache.Event[T]) bool { return e.Kind != cache.Deleted }

// Gone chooses the end of an object: it was deleted, or another took its place.
func Gone[T object.Object](e cache.Event[T]) bool {
	return e.Kind == cache.Deleted || e.Kind == cache.Replaced
}

// Later leaves out the objects that were there when the controller started.
func Later[T object.Object](e cache.Event[T]) bool { return !e.Initial }

// Selected returns a predicate that chooses events of objects whose labels match, or did
// so before: the update that makes an object match no longer is chosen, and those that
// follow are not. A nil selector matches all.
func Selected[T object.Object](selector labels.Selector) Predicate[T] {
	if selector == nil {
		selector = labels.Everything()
	}
	matches := func(i cache.Item[T]) bool { return i.Exists() && selector.Matches(i.Meta().Labels) }
	return func(e cache.Event[T]) bool { return matches(e.New) || matches(e.Old) }
}

// Either returns a predicate that chooses what one of several does.
func Either[T object.Object](predicates ...Predicate[T]) Predicate[T] {
	return func(e cache.Event[T]) bool {
		for _, p := range predicates {
			if p == nil || p(e) {
				return true
			}
		}
		return false
	}
}
