// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"iter"
	"reflect"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/internal/parallel"
	"github.com/setpoint-io/setpoint/object"
)

// Objects decodes items. The objects are shared and read-only. Objects that are in memory are not
// decoded again. If many have to be decoded, all CPUs do it. [Snapshot.List] is quicker where it
// selects what is needed.
func Objects[T object.Object](items iter.Seq2[object.Key, Item[T]]) ([]T, error) {
	var l list[T]
	for _, item := range items {
		l.add(item)
	}
	return l.decode()
}

// ObjectsOf is [Objects] of a slice. Object i is that of item i.
func ObjectsOf[T object.Object](items []Item[T]) ([]T, error) {
	l := list[T]{objects: make([]T, 0, len(items))}
	for _, item := range items {
		l.add(item)
	}
	return l.decode()
}

// List decodes the objects that [Snapshot.Select] returns, as [Objects] does.
func (s Snapshot[T]) List(namespace string, selector labels.Selector) ([]T, error) {
	var l list[T]
	if selector != nil && !selector.Empty() {
		s.state.selected(namespace, selector, func(e *entry) bool {
			l.add(Item[T]{e})
			return true
		})
		return l.decode()
	}
	l.objects = make([]T, 0, s.state.lenWithin(namespace))
	s.state.within(namespace, func(e *entry) bool {
		l.add(Item[T]{e})
		return true
	})
	return l.decode()
}

// list collects the objects of a list: first those that are in memory, and then the others.
type list[T object.Object] struct {
	objects []T
	missing []missingObject[T]
}

// missingObject is an item of a list whose object has to be decoded, and its place in the list.
type missingObject[T object.Object] struct {
	place int
	item  Item[T]
}

func (l *list[T]) add(item Item[T]) {
	o, ok := item.ready()
	if !ok {
		l.missing = append(l.missing, missingObject[T]{len(l.objects), item})
	}
	l.objects = append(l.objects, o)
}

// ready returns the object of an item, if it is in memory.
func (i Item[T]) ready() (o T, ok bool) {
	if i.entry == nil || i.entry.form.typ != reflect.TypeFor[T]() && !anyType[T]() {
		return o, false
	}
	if o, ok = ready[T](i.entry); ok {
		i.note(o)
	}
	return o, ok
}

// decode decodes the objects that are missing. The error is that of the first one that cannot be
// decoded.
func (l *list[T]) decode() ([]T, error) {
	errs := make([]error, len(l.missing))
	parallel.Each(len(l.missing), forCPU, func(n int) {
		m := &l.missing[n]
		l.objects[m.place], errs[n] = m.item.object(true)
	})
	for n, err := range errs {
		if err != nil {
			return nil, err
		}
		m := &l.missing[n]
		m.item.note(l.objects[m.place]) // here, where the caller is on the stack
	}
	return l.objects, nil
}

// forCPU is for how many objects another CPU is worth its start: a decode takes some 10 µs, and to
// start a goroutine and wait for it about one.
const forCPU = 16
