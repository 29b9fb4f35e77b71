// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selectors

import (
	"iter"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// Index finds objects by the selectors that they have. It is safe for concurrent use.
type Index[S object.Object] struct {
	informer cache.SharedInformer[S]
	index    cache.Index[S]
	selector func(S) (labels.Selector, error)
}

// selectorIndex is the identity of the index in an informer.
type selectorIndex struct{}

// NewIndex indexes the objects of an informer by their selectors. selector returns the
// selector of an object, labels.Nothing() if it selects nothing. It must return the same
// selector for the same object, and is called at each change of an object. An object for
// which it fails selects nothing, and the informer logs the error.
//
// An informer has one index of selectors. Controllers that share the informer share the
// index too, and must pass functions that return the same selectors.
func NewIndex[S object.Object](informer cache.SharedInformer[S], selector func(S) (labels.Selector, error)) *Index[S] {
	x := &Index[S]{informer: informer, selector: selector}
	x.index = cache.SharedIndex(informer, selectorIndex{}, func(item cache.Item[S]) ([]string, error) {
		s, err := x.of(item)
		if err != nil {
			return nil, err
		}
		return places(item.Key().Namespace, s), nil
	})
	return x
}

func (x *Index[S]) of(item cache.Item[S]) (labels.Selector, error) {
	o, err := item.Object()
	if err != nil {
		return nil, err
	}
	return x.selector(o)
}

// Selecting returns the objects of a namespace whose selectors match a set of labels, each
// once and in no particular order. It reads the newest state of the informer.
func (x *Index[S]) Selecting(namespace string, set object.Labels) iter.Seq2[object.Key, cache.Item[S]] {
	return func(yield func(object.Key, cache.Item[S]) bool) {
		snapshot := x.informer.Snapshot() // an object that changes meanwhile is in it once
		if snapshot.NamespaceLen(namespace) == 0 {
			return // most namespaces have no objects of most kinds
		}
		w := walk[cache.Item[S]]{
			has:   func(place string) bool { return x.index.Has(snapshot, place) },
			at:    func(place string) iter.Seq2[object.Key, cache.Item[S]] { return x.index.In(snapshot, place) },
			match: func(item cache.Item[S]) bool { return x.matches(item, set) },
			yield: yield,
		}
		w.all(namespace, set)
	}
}

// matches compares the whole selector. An error has been logged when the object was indexed.
func (x *Index[S]) matches(item cache.Item[S], set object.Labels) bool {
	s, err := x.of(item)
	return err == nil && s.Matches(set)
}
