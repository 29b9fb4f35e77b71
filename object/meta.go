// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Object is a pointer to an API type: the constraint of the library's typed
// functions.
type Object interface {
	metav1.Object
	runtime.Object
}

// New returns an empty T.
func New[T Object]() T { return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) }

// Meta is what selects an object and relates it to others: what is known of it
// without decoding it. Annotations are not part of it, since they can be as large
// as the rest of the object. A Meta is a value; the slices in it are shared and
// read-only.
type Meta struct {
	Key
	UID             types.UID
	Version         Version
	Generation      int64
	Labels          Labels
	OwnerReferences []metav1.OwnerReference
	Finalizers      []string
	Created         time.Time
	Deleted         time.Time // zero while the object is not being deleted
}

// MetaOf returns the metadata of a decoded object. The slices are the object's own.
// A resourceVersion that is no number yields a zero Version.
func MetaOf(o metav1.Object) Meta {
	version, _ := ParseVersion(o.GetResourceVersion())
	m := Meta{
		Key:             KeyOf(o),
		UID:             o.GetUID(),
		Version:         version,
		Generation:      o.GetGeneration(),
		Labels:          LabelsOf(o.GetLabels()),
		OwnerReferences: o.GetOwnerReferences(),
		Finalizers:      o.GetFinalizers(),
		Created:         o.GetCreationTimestamp().Time,
	}
	if deleted := o.GetDeletionTimestamp(); deleted != nil {
		m.Deleted = deleted.Time
	}
	return m
}

// Deleting reports whether the object has a deletion timestamp: it will go once
// its grace period has ended and its finalizers are gone.
func (m Meta) Deleting() bool { return !m.Deleted.IsZero() }

// Controller returns the owner reference that is marked as the managing
// controller, or nil. The result is read-only.
func (m Meta) Controller() *metav1.OwnerReference { return ControllerOf(m.OwnerReferences) }

// ControllerOf returns the reference among refs that is marked as the managing
// controller, or nil. The result points into refs.
func ControllerOf(refs []metav1.OwnerReference) *metav1.OwnerReference {
	for i := range refs {
		if refs[i].Controller != nil && *refs[i].Controller {
			return &refs[i]
		}
	}
	return nil
}
