// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Reader reads the items of one informer in any view. An informer of metadata may have a successor of
// whole objects: its items then have either, and are read in the view of metadata alone.
type Reader struct {
	Kind   schema.GroupVersionKind
	Stored View                 // of the type of the informer's objects, without a successor
	Typed  func() object.Object // returns an empty object of the Go type; nil: there is no such type
}

// Read returns the object of an item. If shared is set, other readers may have the same object: it
// is read-only. Otherwise it is the caller's.
func (r *Reader) Read(item cache.Item[object.Object], view View) (o object.Object, shared bool, err error) {
	switch {
	case r.IsStored(item, view):
		o, err = item.Object()
		return o, true, err
	case view == Metadata:
		m := new(metav1.PartialObjectMetadata)
		err = item.DecodeInto(m)
		m.SetGroupVersionKind(r.Kind)
		return m, false, err
	case view == Typed:
		o = r.Typed()
		return o, false, item.DecodeInto(o)
	case item.Encoding() == wire.JSON:
		u := new(unstructured.Unstructured)
		err = item.DecodeInto(u)
		u.SetGroupVersionKind(r.Kind)
		return u, false, err
	}
	typed, err := item.Object()
	if err != nil {
		return nil, false, err
	}
	u, err := ToUnstructured(typed, r.Kind)
	return u, false, err
}

// IsStored reports whether the object of an item has the type of a view, so that readers share it.
func (r *Reader) IsStored(item cache.Item[object.Object], view View) bool {
	return view == r.Stored && (view != Metadata || item.MetadataOnly())
}

// Copy returns the object of an item as one of the caller's own.
func (r *Reader) Copy(item cache.Item[object.Object], view View) (object.Object, error) {
	if r.IsStored(item, view) {
		return item.Copy()
	}
	o, _, err := r.Read(item, view) // made for this call
	return o, err
}
