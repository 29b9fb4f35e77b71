// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"

	"github.com/setpoint-io/setpoint/object"
)

// entry is an object as the store keeps it. It never changes.
type entry struct {
	meta object.Meta
	obj  object.Object
}

func newEntry(o object.Object) *entry { return &entry{meta: object.MetaOf(o), obj: o} }

// path is where an entry stands in the store's tree: all objects of a namespace
// are neighbours.
func path(key object.Key) []byte {
	b := make([]byte, 0, len(key.Namespace)+1+len(key.Name))
	b = append(b, key.Namespace...)
	b = append(b, '/')
	return append(b, key.Name...)
}

// Item is an object of a snapshot or an event. Its metadata is at hand, its
// content is decoded when asked for. The zero Item is no object. An Item is a
// small value; copy it freely.
type Item[T object.Object] struct{ entry *entry }

// Exists reports whether there is an object.
func (i Item[T]) Exists() bool { return i.entry != nil }

// Meta returns the object's metadata, without decoding the object. It is
// read-only and must not be asked of an Item that does not exist.
func (i Item[T]) Meta() object.Meta { return i.entry.meta }

// Object returns the object. It is shared and read-only. The error says that the
// object cannot be decoded.
func (i Item[T]) Object() (T, error) {
	var none T
	if i.entry == nil {
		return none, fmt.Errorf("decoding an item that does not exist")
	}
	o, ok := i.entry.obj.(T)
	if !ok {
		return none, fmt.Errorf("item %s is a %T, not a %T", i.entry.meta.Key, i.entry.obj, none)
	}
	return o, nil
}
