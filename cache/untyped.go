// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"reflect"
	"unsafe"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// InformerOf is as [Informer], for a type that is known only when the program runs: that of
// sample, which must be a pointer. The items of the informer return objects of that type. Such
// an informer is the one that [Informer] returns for the type and the same options, and it is
// for reading: its methods that write, and Server, must not be used.
func InformerOf(p Provider, sample object.Object, options ...InformerOption) SharedInformer[object.Object] {
	typ := reflect.TypeOf(sample)
	empty := func() object.Object { return reflect.New(typ.Elem()).Interface().(object.Object) }
	c := choose(p, empty(), options)
	c.exact = true
	server := client.For[object.Object](p.Client())
	return SharedInformer[object.Object]{p.InformerFactory().informer(c, typ, empty), &server}
}

// anyType reports whether T stands for the type that the informer has.
func anyType[T object.Object]() bool { return reflect.TypeFor[T]().Kind() == reflect.Interface }

// objectAt returns the object at an address as a T. typ is the type of the object.
func objectAt[T object.Object](p unsafe.Pointer, typ reflect.Type) T {
	if anyType[T]() {
		return reflect.NewAt(typ.Elem(), p).Interface().(T)
	}
	return *(*T)(unsafe.Pointer(&p)) //nolint:gosec // T is a pointer, and so is p
}
