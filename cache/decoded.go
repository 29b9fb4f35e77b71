// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"reflect"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
	"weak"

	"github.com/setpoint-io/setpoint/object"
)

// decoded is the decoded object of an entry. Readers of one object share it. The garbage collector
// frees an object that nothing refers to; a budget may refer to it. The form of the entry has the
// type of the object.
type decoded struct {
	object weak.Pointer[byte]
	kept   atomic.Pointer[kept] // nil: the budget does not have it
}

// pointerTo returns the pointer that an object is.
func pointerTo(o object.Object) unsafe.Pointer { return reflect.ValueOf(o).UnsafePointer() }

// pointer returns the object, or nil if it is not in memory any more.
func (d *decoded) pointer() unsafe.Pointer {
	if d == nil {
		return nil
	}
	if k := d.kept.Load(); k != nil {
		return k.read()
	}
	return unsafe.Pointer(d.object.Value()) //nolint:gosec // objectAt has the type that it was made of
}

// ready returns the decoded object of an entry, if it is in memory. T must be the type that the
// entry's form makes, or stand for it, which the caller has checked.
func ready[T object.Object](e *entry) (o T, ok bool) {
	d := e.decoded.Load()
	p := d.pointer()
	if p == nil {
		return o, false
	}
	if o = objectAt[T](p, e.form.typ); d.kept.Load() == nil {
		e.form.keepHeld(e, d, o)
	}
	return o, true
}

// objectOf returns the object of an entry, and decodes it if needed. T is as that of ready. The
// budget keeps an object that was decoded before, and that of a list: most single objects are
// read once, by handlers.
func objectOf[T object.Object](e *entry, ofList bool) (T, error) {
	if o, ok := ready[T](e); ok {
		return o, nil
	}
	var none T
	again := e.decoded.Load() != nil
	o, err := e.decode()
	if err != nil {
		return none, err
	}
	e.form.budget.countDecode()
	made := &decoded{object: weak.Make((*byte)(pointerTo(o)))}
	for {
		before := e.decoded.Load()
		if p := before.pointer(); p != nil {
			// Another goroutine decoded it at the same time. There is one object for a
			// state: use that one.
			return objectAt[T](p, e.form.typ), nil
		}
		if e.decoded.CompareAndSwap(before, made) {
			break
		}
	}
	e.form.recent.keep(o)
	e.form.keepDecoded(e, made, o, again || ofList)
	return o.(T), nil
}

// readBefore is the state of an entry that was read, without an object that readers could share.
var readBefore decoded

// copyOf returns a copy of the object of an entry. T is as that of ready.
func copyOf[T object.Object](e *entry) (T, error) {
	if o, ok := ready[T](e); ok {
		return o.DeepCopyObject().(T), nil
	}
	var none T
	o, err := e.decode()
	if err != nil {
		return none, err
	}
	e.form.budget.countDecode()
	if e.decoded.CompareAndSwap(nil, &readBefore) || !e.form.keepForCopies(e, o) {
		return o.(T), nil // no other reader has it
	}
	return o.DeepCopyObject().(T), nil
}

// recent refers to the objects that were decoded last, so that an object that is read often is
// not decoded after every run of the garbage collector. It drops them some time after the last
// decode: a kind that is not read costs nothing.
type recent struct {
	mu      sync.Mutex
	objects [recentMost]object.Object
	next    int
	idle    *time.Timer
	stopped bool
}

const (
	recentMost = 32
	recentFor  = 10 * time.Second
)

func (r *recent) keep(o object.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return
	}
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
	r.stopped = true
	if r.idle != nil {
		r.idle.Stop()
	}
	clear(r.objects[:])
}
