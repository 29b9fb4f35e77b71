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

// decoded is a weak reference to the decoded object of an entry: readers of one object share it,
// and the garbage collector frees an object that nothing refers to. The form of the entry has
// the type of the object.
type decoded struct{ object weak.Pointer[byte] }

// pointerTo returns the pointer that an object is.
func pointerTo(o object.Object) unsafe.Pointer { return reflect.ValueOf(o).UnsafePointer() }

// alive returns the object of a reference, if something still refers to it.
func alive[T object.Object](w *decoded, typ reflect.Type) (o T, ok bool) {
	if w == nil {
		return o, false
	}
	p := unsafe.Pointer(w.object.Value()) //nolint:gosec // typ is the type that it was made of
	if p == nil {
		return o, false
	}
	return objectAt[T](p, typ), true
}

// objectOf returns the object of an entry, and decodes it if needed. T must be the type
// that the entry's form makes, or stand for it, which the caller has checked.
func objectOf[T object.Object](e *entry) (T, error) {
	before := e.decoded.Load()
	if o, ok := alive[T](before, e.form.typ); ok {
		return o, nil
	}
	var none T
	o, err := e.decode()
	if err != nil {
		return none, err
	}
	made := &decoded{weak.Make((*byte)(pointerTo(o)))}
	for !e.decoded.CompareAndSwap(before, made) {
		// Another goroutine decoded it at the same time. There is one object for a
		// state: use that one.
		before = e.decoded.Load()
		if o, ok := alive[T](before, e.form.typ); ok {
			return o, nil
		}
	}
	e.form.recent.keep(o)
	return o.(T), nil
}

// recent refers to the objects that were decoded last, so that an object that is read often is
// not decoded after every run of the garbage collector. It drops them some time after the last
// decode: a kind that is not read costs nothing.
type recent struct {
	mu      sync.Mutex
	objects [recentMost]object.Object
	next    int
	idle    *time.Timer
}

const (
	recentMost = 32
	recentFor  = 10 * time.Second
)

func (r *recent) keep(o object.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.objects[r.next] = o
	r.next = (r.next + 1) % recentMost
	if r.idle == nil {
		r.idle = time.AfterFunc(recentFor, r.drop)
	} else {
		r.idle.Reset(recentFor)
	}
}

func (r *recent) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.objects[:])
}

// stop ends the timer, so that nothing of a stopped informer runs.
func (r *recent) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.idle != nil {
		r.idle.Stop()
	}
	clear(r.objects[:])
}
