// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"iter"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Index finds the objects of an informer by values that a function makes of them. It is a
// small value that may be copied; all methods are safe for concurrent use.
type Index[T object.Object] struct {
	informer SharedInformer[T]
	id       any
}

// NewIndex adds an index to an informer, at any time: it has the objects that exist already too.
// values returns the values under which an object is found. It must be quick, return the same
// values for the same object, and change nothing: the informer calls it once for each change,
// and handles no other change of the kind during the call. If values fails or panics for an
// object, the index does not have the object, and the failure is logged.
func NewIndex[T object.Object](of SharedInformer[T], values func(Item[T]) ([]string, error)) Index[T] {
	return SharedIndex(of, new(unshared), values)
}

// unshared is the identity of an index with one handle. It has a size, so that each has an
// address of its own.
type unshared struct{ _ byte }

// SharedIndex is as [NewIndex], for several users of an informer that need the same index. Users
// with equal ids share the index of the first one, with its function. An id is comparable and of
// a type of its own, as the keys of a context are, so that ids of two packages differ.
func SharedIndex[T object.Object](of SharedInformer[T], id any, values func(Item[T]) ([]string, error)) Index[T] {
	of.informer.addIndex(id, func(e *entry) ([]string, error) { return values(Item[T]{e}) })
	return Index[T]{of, id}
}

// Remove removes the index from its informer, which calls its function no more. It finds nothing from then on, but
// in snapshots that were taken before. Those who share the index lose it too. Removing it twice is no error.
func (x Index[T]) Remove() { x.informer.informer.removeIndex(x.id) }

// TextIndex is the index of a text, such as that of Pods by [wire.NodeName]. It reads that field
// alone, at a tenth of the cost of a decode. All its users share it. Objects without the text
// are not in it.
func TextIndex[T object.Object](of SharedInformer[T], p wire.Path) Index[T] {
	return SharedIndex(of, p, func(item Item[T]) ([]string, error) {
		value, err := item.entry.textAt(p)
		if err != nil || value == "" {
			return nil, err
		}
		return []string{value}, nil
	})
}

// Find returns the objects under a value in the newest state.
func (x Index[T]) Find(value string) iter.Seq2[object.Key, Item[T]] {
	return x.In(x.informer.Snapshot(), value)
}

// In returns the objects under a value in a snapshot of the informer. A snapshot that is older
// than the index has none.
func (x Index[T]) In(s Snapshot[T], value string) iter.Seq2[object.Key, Item[T]] {
	if number, ok := s.state.numbers[x.id]; ok {
		return items[T](s.state.indexes[number].find(value))
	}
	return items[T](trie[*entry]{})
}

// Has reports whether there are objects under a value in a snapshot of the informer. It allocates nothing.
func (x Index[T]) Has(s Snapshot[T], value string) bool {
	number, ok := s.state.numbers[x.id]
	return ok && s.state.indexes[number].find(value).len > 0
}

// Values returns the values that have objects in a snapshot of the informer, and how many
// objects each has.
func (x Index[T]) Values(s Snapshot[T]) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		if number, ok := s.state.numbers[x.id]; ok {
			s.state.indexes[number].all(func(g *group) bool { return yield(g.value, g.members.len) })
		}
	}
}
