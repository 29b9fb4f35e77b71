// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/object"
)

// List decodes the objects of the newest state that a label selector matches. They are
// shared and read-only, and in no particular order. Who needs only some of many, or
// only their metadata, is better served by [Snapshot.Select].
func (s SharedInformer[T]) List(selector labels.Selector) ([]T, error) {
	return Objects(s.Snapshot().Select("", selector))
}

// Namespaced reads the objects of one namespace.
func (s SharedInformer[T]) Namespaced(namespace string) Namespaced[T] {
	return Namespaced[T]{informer: s, namespace: namespace}
}

// Namespaced is a view of one namespace of an informer.
type Namespaced[T object.Object] struct {
	informer  SharedInformer[T]
	namespace string
}

// Get is as [SharedInformer.Get].
func (n Namespaced[T]) Get(name string) (T, error) {
	return n.informer.Get(object.Key{Namespace: n.namespace, Name: name})
}

// List is as [SharedInformer.List].
func (n Namespaced[T]) List(selector labels.Selector) ([]T, error) {
	return Objects(n.informer.Snapshot().Select(n.namespace, selector))
}
