// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Item is an object of a snapshot or an event. Its metadata can be read without decoding it. The
// zero Item is no object. An Item is a small value that may be copied. Equal items (==) are the
// same state of one object, so a result computed from an item is valid for an equal one. Two
// items of one state may differ.
type Item[T object.Object] struct{ entry *entry }

// Exists reports whether there is an object.
func (i Item[T]) Exists() bool { return i.entry != nil }

// Key returns the object's key. It panics for an Item that does not exist.
func (i Item[T]) Key() object.Key { return i.entry.key() }

// Meta returns the object's metadata without decoding it. It panics for an Item that does not
// exist. It makes a string of the UID, which is kept as 16 bytes; Key, Version, Labels, Generation,
// Deleting and Controller allocate nothing.
func (i Item[T]) Meta() object.Meta { return i.entry.meta() }

// Version returns the object's resourceVersion. It panics for an Item that does not exist.
func (i Item[T]) Version() object.Version { return i.entry.at() }

// Labels returns the object's labels. It panics for an Item that does not exist.
func (i Item[T]) Labels() object.Labels { return i.entry.family.labels }

// Generation returns the object's generation, 0 if its kind has none. It panics for an Item that
// does not exist.
func (i Item[T]) Generation() int64 { return i.entry.generation() }

// Deleting reports whether the object has a deletion timestamp. It panics for an Item that does not
// exist.
func (i Item[T]) Deleting() bool { return i.entry.deleting() }

// Controller returns the reference to the object's managing controller, read-only; nil if it has none. It panics for an Item
// that does not exist.
func (i Item[T]) Controller() *metav1.OwnerReference {
	return object.ControllerOf(i.entry.family.owners)
}

// Annotations reads the object's annotations without decoding the rest of it. The map belongs
// to the caller.
func (i Item[T]) Annotations() (map[string]string, error) {
	if i.entry == nil {
		return nil, errNoItem
	}
	return i.entry.annotations()
}

// Object returns the decoded object. It is shared and read-only: call DeepCopy before you
// change it. The error is that the object cannot be decoded: the informer has read only its
// metadata, so the cache may have objects whose content cannot be read.
func (i Item[T]) Object() (T, error) {
	o, err := i.object(false)
	if err == nil {
		i.note(o)
	}
	return o, err
}

// note records that the caller has got the object, if the factory looks for mutation. Metadata of
// a whole object is not shared.
func (i Item[T]) note(o T) {
	if h := i.entry.form.handouts; h != nil && reflect.TypeOf(o) == i.entry.form.typ {
		h.note(i.entry, o)
	}
}

// GivenTo records, for [Factory.DetectMutation], a function that receives the object and does not read it itself. An adapter
// reads the object, and then calls the function of a program with it. The holder names that function in the log. It costs nothing while mutation is not looked for.
func (i Item[T]) GivenTo(holder string) {
	if h := i.entry.form.handouts; h != nil {
		h.add(i.entry, holder)
	}
}

// object returns the object. A list has the budget keep it from the first decode on.
func (i Item[T]) object(ofList bool) (T, error) {
	var none T
	if i.entry == nil {
		return none, errNoItem
	}
	form := i.entry.form
	if t := reflect.TypeFor[T](); form.typ != t && !anyType[T]() {
		// An informer of whole objects may serve for metadata.
		if _, ok := any(none).(*metav1.PartialObjectMetadata); ok {
			m := new(metav1.PartialObjectMetadata)
			err := i.entry.decodeInto(m)
			m.SetGroupVersionKind(form.gvk) // as in an informer of metadata
			return any(m).(T), err
		}
		return none, fmt.Errorf("item %s is a %s, not a %s", i.entry.key(), form.typ, t)
	}
	o, err := objectOf[T](i.entry, ofList)
	if err != nil {
		return none, fmt.Errorf("reading %s from the cache: %w", i.entry.key(), err)
	}
	return o, nil
}

// Copy returns the object as one of the caller's own, which the caller may change. An object that is
// in memory is copied, and another one is decoded: that costs about as much as to copy it. An object
// that is read again gets a place in the [Budget], if there is room.
func (i Item[T]) Copy() (T, error) {
	if i.entry == nil || i.entry.form.typ != reflect.TypeFor[T]() && !anyType[T]() {
		return i.object(false) // an error, or metadata of the caller's own
	}
	o, err := copyOf[T](i.entry)
	if err != nil {
		var none T
		return none, fmt.Errorf("reading %s from the cache: %w", i.entry.key(), err)
	}
	return o, nil
}

// DecodeInto decodes the object into o, which is the caller's, and whose former content is lost. o
// may have another type than the objects of the informer: *metav1.PartialObjectMetadata, of which
// only the metadata is decoded, or any type of the kind, if the server sent the object in JSON. If
// what the server sent cannot be decoded into the type, the error says so.
func (i Item[T]) DecodeInto(o object.Object) error {
	if i.entry == nil {
		return errNoItem
	}
	if err := i.entry.decodeInto(o); err != nil {
		return fmt.Errorf("reading %s from the cache: %w", i.entry.key(), err)
	}
	return nil
}

// MetadataOnly reports whether the item has only the metadata of its object. The items of an informer
// that another one has succeeded may have either.
func (i Item[T]) MetadataOnly() bool {
	return i.entry != nil && i.entry.form.typ == reflect.TypeFor[*metav1.PartialObjectMetadata]()
}

// Encoding returns how the server sent the object.
func (i Item[T]) Encoding() wire.Encoding { return i.entry.form.encoding }

// Without returns the object decoded without one of its top-level fields, which may be there nevertheless.
// It may be shared, and is read-only: call DeepCopy before you change it. It is for callers that read only
// the rest. The spec of a Pod, with the volumes that the server adds, is most of the work of decoding it.
func (i Item[T]) Without(field wire.Path) (T, error) {
	if i.entry == nil || i.entry.form.encoding != wire.Protobuf || i.entry.form.typ != reflect.TypeFor[T]() {
		return i.Object()
	}
	if i.entry.decoded.Load().pointer() != nil {
		return i.Object() // it is decoded already
	}
	o := object.New[T]()
	if err := i.entry.decodeWithout(field, o); err != nil {
		var none T
		return none, fmt.Errorf("reading %s from the cache: %w", i.entry.key(), err)
	}
	return o, nil
}

var errNoItem = errors.New("reading an item that does not exist")
