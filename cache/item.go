// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
)

// Item is an object of a snapshot or an event. Its metadata is at hand, its content is
// decoded when somebody asks for it. The zero Item is no object. An Item is a small
// value; copy it freely. Equal items (==) are one state of one object, so that who keeps
// what was made of an item knows whether it still holds; the reverse is not promised.
type Item[T object.Object] struct{ entry *entry }

// Exists reports whether there is an object.
func (i Item[T]) Exists() bool { return i.entry != nil }

// Key returns the object's key. It must not be asked of an Item that does not exist.
func (i Item[T]) Key() object.Key { return i.entry.key() }

// Meta returns what selects the object and relates it to others, without decoding
// it. It must not be asked of an Item that does not exist.
func (i Item[T]) Meta() object.Meta { return i.entry.meta() }

// Annotations reads the object's annotations without decoding the rest of it. The map
// is the caller's.
func (i Item[T]) Annotations() (map[string]string, error) {
	if i.entry == nil {
		return nil, errNoItem
	}
	return i.entry.annotations()
}

// Object returns the object, decoded now or by somebody who still holds it. It is
// shared and read-only: call DeepCopy before you change it. The error says that the
// object cannot be decoded: when it arrived only its metadata was looked at, so one
// whose content nobody can read is there, and its version is counted as seen.
func (i Item[T]) Object() (T, error) {
	var none T
	if i.entry == nil {
		return none, errNoItem
	}
	form := i.entry.form
	if t := reflect.TypeFor[T](); form.typ != t {
		// Who asks for metadata may be served by an informer of whole objects.
		if _, ok := any(none).(*metav1.PartialObjectMetadata); ok {
			m := new(metav1.PartialObjectMetadata)
			return any(m).(T), i.entry.decodeInto(m)
		}
		return none, fmt.Errorf("item %s is a %s, not a %s", i.entry.key(), form.typ, t)
	}
	o, err := objectOf[T](i.entry)
	if err != nil {
		return none, fmt.Errorf("reading %s from the cache: %w", i.entry.key(), err)
	}
	if form.handouts != nil {
		form.handouts.note(i.entry, o)
	}
	return o, nil
}

var errNoItem = errors.New("reading an item that does not exist")
