// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package owned

import (
	"iter"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// InNamespace leaves out the items of other namespaces than the owner's. [cache.Snapshot.ControlledBy] finds all objects
// that name a UID as their controller, and an owner owns nothing in another namespace, whatever an object there says. It
// decodes nothing.
func InNamespace[T object.Object](namespace string, items iter.Seq2[object.Key, cache.Item[T]]) iter.Seq2[object.Key, cache.Item[T]] {
	return func(yield func(object.Key, cache.Item[T]) bool) {
		for key, item := range items {
			if key.Namespace == namespace && !yield(key, item) {
				return
			}
		}
	}
}
