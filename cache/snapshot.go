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
// safe for concurrent use. It keeps the objects it holds alive: do not store one for
// long. Objects come in no particular order, which is the same each time for the same
// Snapshot.
type Snapshot[T object.Object] struct{ state *state }

// Version returns the resourceVersion up to which the kind had been seen.
func (s Snapshot[T]) Version() object.Version { return s.state.version }

// Complete returns the version up to which the snapshot has every change. After a list or a
// bookmark that is Version. After an event it is the version before: a server may make several
// changes at one version, as etcd does when it deletes all keys of a lease, and only a later
// event or a bookmark shows that there are no more. A program that stores a version to resume
// from stores this one.
func (s Snapshot[T]) Complete() object.Version { return s.state.complete }

// Len returns the number of objects.
func (s Snapshot[T]) Len() int { return s.state.len }

// NamespaceLen returns the number of objects of a namespace.
func (s Snapshot[T]) NamespaceLen(namespace string) int { return s.state.spaces.find(namespace).len }

// Get returns an object; the Item does not exist if there is none.
func (s Snapshot[T]) Get(key object.Key) Item[T] { return Item[T]{s.state.at(key)} }

// All returns every object, those of one namespace together.
func (s Snapshot[T]) All() iter.Seq2[object.Key, Item[T]] {
	return func(yield func(object.Key, Item[T]) bool) {
		s.state.all(func(e *entry) bool { return yield(e.key(), Item[T]{e}) })
	}
}

// Since returns the differences from an earlier Snapshot of the same informer: each object as it
// was and as it is. One of the two does not exist if the object was created or deleted between.
// The cost depends on the number of changes, not on the number of objects. before may be the
// zero Snapshot.
//
// Since may also return an object that has not changed and that the informer keeps in another
// form. Its version does not show that: a server that was restored from a backup may use a
// version twice.
func (s Snapshot[T]) Since(before Snapshot[T]) iter.Seq2[Item[T], Item[T]] {
	if before.state == nil {
		before.state = new(state)
	}
	return func(yield func(was, is Item[T]) bool) {
		s.state.since(before.state, func(was, is *entry) bool { return yield(Item[T]{was}, Item[T]{is}) })
	}
}

// Namespace returns the objects of a namespace. It costs nothing for the objects of
// others.
func (s Snapshot[T]) Namespace(namespace string) iter.Seq2[object.Key, Item[T]] {
	return items[T](s.state.spaces.find(namespace))
}

func items[T object.Object](members trie[*entry]) iter.Seq2[object.Key, Item[T]] {
	return func(yield func(object.Key, Item[T]) bool) {
		members.all(func(e *entry) bool { return yield(e.key(), Item[T]{e}) })
	}
}

// ControlledBy returns the objects whose managing controller has the UID. The namespace is that of the controlling object:
// one in a namespace owns nothing in another, whatever an object there says. One without a namespace, for which it is empty,
// may own objects everywhere.
func (s Snapshot[T]) ControlledBy(namespace string, uid types.UID) iter.Seq2[object.Key, Item[T]] {
	return func(yield func(object.Key, Item[T]) bool) {
		s.state.indexes[relations].find(string(uid)).all(func(e *entry) bool {
			owner, key := object.ControllerOf(e.family.owners), e.key()
			return owner == nil || owner.UID != uid || namespace != "" && key.Namespace != namespace || yield(key, Item[T]{e})
		})
	}
}

// Orphans returns the objects of a namespace that no controller manages.
func (s Snapshot[T]) Orphans(namespace string) iter.Seq2[object.Key, Item[T]] {
	return items[T](s.state.orphansOf(namespace))
}

// Select returns the objects of a namespace, or of all if it is empty, that a label
// selector matches; nil matches all. It compares each object of the namespace. Where selectors with
// the value of a label are used again and again on many objects, it finds the objects by an index of
// that label, which it makes and drops itself. The order of the objects may change with that.
func (s Snapshot[T]) Select(namespace string, selector labels.Selector) iter.Seq2[object.Key, Item[T]] {
	return func(yield func(object.Key, Item[T]) bool) {
		each := func(e *entry) bool { return yield(e.key(), Item[T]{e}) }
		if selector == nil || selector.Empty() {
			s.state.within(namespace, each)
			return
		}
		s.state.selected(namespace, selector, each)
	}
}

// Matching leaves out the objects that a label selector does not match; nil matches all.
func Matching[T object.Object](items iter.Seq2[object.Key, Item[T]], selector labels.Selector) iter.Seq2[object.Key, Item[T]] {
	if selector == nil {
		return items
	}
	return func(yield func(object.Key, Item[T]) bool) {
		for key, item := range items {
			if item.entry.selectedBy(selector) && !yield(key, item) {
				return
			}
		}
	}
}
