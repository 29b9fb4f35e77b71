// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"iter"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// Snapshot is the state of a kind at one resourceVersion. It never changes and is
// safe for concurrent use. It keeps the objects it holds alive: do not store one
// for long.
type Snapshot[T object.Object] struct{ state *state }

// Version returns the resourceVersion up to which the kind had been seen.
func (s Snapshot[T]) Version() object.Version { return s.state.version }

// Len returns the number of objects.
func (s Snapshot[T]) Len() int { return s.state.objects.Len() }

// Get returns an object; the Item does not exist if there is none.
func (s Snapshot[T]) Get(key object.Key) Item[T] { return Item[T]{s.state.get(key)} }

// All returns every object, in the order of namespaces and names.
func (s Snapshot[T]) All() iter.Seq2[object.Key, Item[T]] {
	return func(yield func(object.Key, Item[T]) bool) {
		walk(s.state.objects, nil, func(e *entry) bool { return yield(e.meta.Key, Item[T]{e}) })
	}
}

// Namespace returns the objects of a namespace, in the order of their names. It
// costs nothing for the objects of others.
func (s Snapshot[T]) Namespace(namespace string) iter.Seq2[object.Key, Item[T]] {
	prefix := []byte(namespace + "/")
	return func(yield func(object.Key, Item[T]) bool) {
		walk(s.state.objects, prefix, func(e *entry) bool { return yield(e.meta.Key, Item[T]{e}) })
	}
}

// Index returns the objects that an index has under a value, in the order of
// namespaces and names. An index that was not added has none.
func (s Snapshot[T]) Index(name, value string) iter.Seq2[object.Key, Item[T]] {
	return func(yield func(object.Key, Item[T]) bool) {
		if tree := s.state.indexes[name]; tree != nil {
			walk(tree, append([]byte(value), 0), func(e *entry) bool { return yield(e.meta.Key, Item[T]{e}) })
		}
	}
}

// controllerIndex finds objects by the UID of their managing controller, and those
// that have none by their namespace. Every store has it.
const controllerIndex = "setpoint/controller"

func byController(e *entry) ([]string, error) {
	if owner := e.meta.Controller(); owner != nil {
		return []string{string(owner.UID)}, nil
	}
	return []string{"orphans/" + e.meta.Namespace}, nil
}

// ControlledBy returns the objects whose managing controller has the UID.
func (s Snapshot[T]) ControlledBy(uid types.UID) iter.Seq2[object.Key, Item[T]] {
	return s.Index(controllerIndex, string(uid))
}

// Orphans returns the objects of a namespace that no controller manages.
func (s Snapshot[T]) Orphans(namespace string) iter.Seq2[object.Key, Item[T]] {
	return s.Index(controllerIndex, "orphans/"+namespace)
}

// Matching leaves those out that a label selector does not match.
func Matching[T object.Object](items iter.Seq2[object.Key, Item[T]], selector labels.Selector) iter.Seq2[object.Key, Item[T]] {
	return func(yield func(object.Key, Item[T]) bool) {
		for key, item := range items {
			if selector.Matches(item.Meta().Labels) && !yield(key, item) {
				return
			}
		}
	}
}

// Objects decodes items. The objects are shared and read-only.
func Objects[T object.Object](items iter.Seq2[object.Key, Item[T]]) ([]T, error) {
	var all []T
	for _, item := range items {
		o, err := item.Object()
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}
