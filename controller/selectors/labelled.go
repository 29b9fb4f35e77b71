// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selectors

import (
	"iter"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// Labelled finds objects by the selectors that match them. It is safe for concurrent use.
type Labelled[T object.Object] struct {
	index cache.Index[T]
	// rest returns all indexed objects of a namespace.
	rest func(cache.Snapshot[T], string) iter.Seq2[object.Key, cache.Item[T]]
}

// NewLabelled indexes the objects of an informer by their labels. Where that has been
// done before, the index is shared.
func NewLabelled[T object.Object](informer cache.SharedInformer[T]) *Labelled[T] {
	return newLabelled(informer, labelIndex{}, func(cache.Item[T]) bool { return true }, cache.Snapshot[T].Namespace)
}

// NewOrphans indexes those objects of an informer by their labels that have no managing
// controller. They are the ones that a controller may adopt, and usually few: the index
// costs little memory. Where that has been done before, the index is shared.
func NewOrphans[T object.Object](informer cache.SharedInformer[T]) *Labelled[T] {
	return newLabelled(informer, labelIndex{orphans: true}, func(item cache.Item[T]) bool { return item.Controller() == nil }, cache.Snapshot[T].Orphans)
}

// labelIndex is the identity of an index in an informer.
type labelIndex struct{ orphans bool }

func newLabelled[T object.Object](informer cache.SharedInformer[T], id labelIndex, indexed func(cache.Item[T]) bool,
	rest func(cache.Snapshot[T], string) iter.Seq2[object.Key, cache.Item[T]],
) *Labelled[T] {
	index := cache.SharedIndex(informer, id, func(item cache.Item[T]) ([]string, error) {
		if !indexed(item) {
			return nil, nil
		}
		namespace, set := item.Key().Namespace, item.Labels()
		values := make([]string, 0, set.Len())
		for key, value := range set.All() {
			values = append(values, pair(namespace, key, value))
		}
		return values, nil
	})
	return &Labelled[T]{index, rest}
}

// pair is the value of the index under which objects with a label are.
func pair(namespace, key, value string) string { return namespace + "/" + key + "=" + value }

// Selected returns the objects of a namespace that a selector matches, in no particular
// order; nil matches all. The snapshot is one of the informer that was indexed.
func (l *Labelled[T]) Selected(snapshot cache.Snapshot[T], namespace string, selector labels.Selector) iter.Seq2[object.Key, cache.Item[T]] {
	if selector == nil {
		return l.rest(snapshot, namespace)
	}
	requirements, selectable := selector.Requirements()
	if !selectable {
		return func(func(object.Key, cache.Item[T]) bool) {}
	}
	var candidates []iter.Seq2[object.Key, cache.Item[T]]
	for _, r := range requirements {
		if values, ok := valuesOf(r); ok {
			candidates = append(candidates, l.having(snapshot, namespace, r.Key(), values))
		}
	}
	if len(candidates) == 0 {
		candidates = append(candidates, l.rest(snapshot, namespace))
	}
	return cache.Matching(shortest(candidates), selector)
}

// having returns the objects whose label has one of several values.
func (l *Labelled[T]) having(snapshot cache.Snapshot[T], namespace, key string, values []string) iter.Seq2[object.Key, cache.Item[T]] {
	return func(yield func(object.Key, cache.Item[T]) bool) {
		for _, value := range values {
			for key, item := range l.index.In(snapshot, pair(namespace, key, value)) {
				if !yield(key, item) {
					return
				}
			}
		}
	}
}

// shortest returns the shortest of several sequences, or one that is not much longer. It
// does not read any of them much further than the length of the one that it returns.
func shortest[K, V any](all []iter.Seq2[K, V]) iter.Seq2[K, V] {
	for most := 64; len(all) > 1; most *= 4 {
		for _, seq := range all {
			n := 0
			for range seq {
				if n++; n > most {
					break
				}
			}
			if n <= most {
				return seq
			}
		}
	}
	return all[0]
}
