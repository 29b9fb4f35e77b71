// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"reflect"
	"sync"
	"time"
	"unsafe"
	"weak"

	"github.com/setpoint-io/setpoint/object"
)

// warm remembers the decoded form of an entry for as long as somebody holds it: two
// readers of one object share it, and an object that nobody looks at goes back to the
// garbage collector. The pointer does not say of what type the object is; the form of
// the entry does.
type warm struct{ object weak.Pointer[byte] }

// pointerTo returns the pointer that an object is.
func pointerTo(o object.Object) unsafe.Pointer { return reflect.ValueOf(o).UnsafePointer() }

// held returns the object that is remembered, if somebody holds it.
func held[T object.Object](w *warm) (o T, ok bool) {
	if w == nil {
		return o, false
	}
	p := unsafe.Pointer(w.object.Value()) //nolint:gosec // T is the type that it was made of
	if p == nil {
		return o, false
	}
	return *(*T)(unsafe.Pointer(&p)), true //nolint:gosec // T is a pointer, and so is p
}

// objectOf returns the object of an entry, decoded before or now. T must be the type
// that the entry's form makes, which the caller has checked.
func objectOf[T object.Object](e *entry) (T, error) {
	before := e.warm.Load()
	if o, ok := held[T](before); ok {
		return o, nil
	}
	var none T
	o, err := e.decode()
	if err != nil {
		return none, err
	}
	made := &warm{weak.Make((*byte)(pointerTo(o)))}
	for !e.warm.CompareAndSwap(before, made) {
		// Somebody else decoded it at the same time. One object for one state:
		// take theirs.
		before = e.warm.Load()
		if o, ok := held[T](before); ok {
			return o, nil
		}
	}
	e.form.kept.keep(o)
	return o.(T), nil
}

// kept holds the objects that were decoded last, so that one that is read again and
// again does not have to be decoded after every run of the garbage collector. A while
// after the last decode it lets all of them go: a kind at rest costs nothing.
type kept struct {
	mu      sync.Mutex
	objects [keptMost]object.Object
	next    int
	idle    *time.Timer
}

const (
	keptMost = 32
	keptFor  = 10 * time.Second
)

func (k *kept) keep(o object.Object) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.objects[k.next] = o
	k.next = (k.next + 1) % keptMost
	if k.idle == nil {
		k.idle = time.AfterFunc(keptFor, k.drop)
	} else {
		k.idle.Reset(keptFor)
	}
}

func (k *kept) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.objects[:])
}

// stop ends the timer: nothing of an informer that has stopped runs on.
func (k *kept) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.idle != nil {
		k.idle.Stop()
	}
	clear(k.objects[:])
}
