// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/setpoint-io/setpoint/object"
)

// kept is a decoded object that a budget keeps.
type kept struct {
	object  unsafe.Pointer // what decoded refers to weakly
	decoded *decoded
	content *content
	bytes   int64
	slot    int
	used    atomic.Bool // it was read since the hand was here
}

// read returns the object, and notes that it was read. A reader writes only to an object that was
// not read for a while, so readers on several CPUs do not wait for each other.
func (k *kept) read() unsafe.Pointer {
	if !k.used.Load() {
		k.used.Store(true)
	}
	return k.object
}

// keepDecoded offers an object that was decoded now to the budget, if it is likely to be read again.
func (c *content) keepDecoded(e *entry, d *decoded, o object.Object, likely bool) {
	if likely && c.budget.keeps() {
		c.offer(e, d, o)
	}
}

// keepHeld offers an object that another reader holds, which costs no memory now. If the budget is
// full, the object waits until it has to be decoded again.
func (c *content) keepHeld(e *entry, d *decoded, o object.Object) {
	if c.budget.keeps() && !c.budget.full.Load() {
		c.offer(e, d, o)
	}
}

func (c *content) offer(e *entry, d *decoded, o object.Object) {
	if k := c.newKept(e, d, o); c.budget.add(k) {
		c.check(e, k)
	}
}

// keepForCopies offers an object that was decoded now, and that no reader has yet. It reports
// whether readers share the object from now on.
func (c *content) keepForCopies(e *entry, o object.Object) bool {
	before := e.decoded.Load()
	if !c.budget.keeps() || before.pointer() != nil {
		return false
	}
	d := &decoded{object: weak.Make((*byte)(pointerTo(o)))}
	k := c.newKept(e, d, o)
	if !c.budget.add(k) {
		return false
	}
	if !e.decoded.CompareAndSwap(before, d) {
		c.budget.remove(k) // another reader was quicker: readers share its object
		return false
	}
	c.check(e, k)
	return true
}

func (c *content) newKept(e *entry, d *decoded, o object.Object) *kept {
	return &kept{object: pointerTo(o), decoded: d, content: c, bytes: c.weights.of(o, e.rawSize()) + keptSize}
}

// check removes an object from the budget if the entry is not the newest state. The writer stores
// a new state first and then releases the old one. So either the writer finds the object in the
// budget, or check finds the new state.
func (c *content) check(e *entry, k *kept) {
	if !c.isNewest(e) {
		c.budget.remove(k)
	}
}

// keptSize is what the budget itself takes for an object.
const keptSize = int64(unsafe.Sizeof(kept{}) + unsafe.Sizeof(decoded{}) + unsafe.Sizeof(uintptr(0)))

// isNewest reports whether the running informer has the entry in its newest state.
func (c *content) isNewest(e *entry) bool {
	if c.store == nil || c.stopped.Load() {
		return false
	}
	return c.store.current.Load().get(e.names()) == e
}

// release drops the decoded object of an entry that the newest state does not have any more. It is
// among the objects that were decoded last from then on: handlers compare it with the new state.
func (c *content) release(e *entry) {
	if e == nil || c.budget == nil {
		return
	}
	d := e.decoded.Load()
	if d == nil {
		return
	}
	if k := d.kept.Load(); k != nil {
		c.recent.keep(objectAt[object.Object](k.object, c.typ))
		c.budget.remove(k)
	}
}

// share takes over the object of an entry that has left its place to this one, if a reader has decoded it meanwhile. If this one has
// another object already, that of the entry leaves the budget: no reader finds it there.
func (e *entry) share(was *entry) {
	d := was.decoded.Load()
	if d == nil || e.decoded.Load() == d || e.decoded.CompareAndSwap(nil, d) {
		return
	}
	e.form.release(was)
}

// stop drops all decoded objects, when the informer stops.
func (c *content) stop() {
	c.stopped.Store(true)
	c.recent.stop()
	if c.store != nil {
		if x := c.store.current.Load().labels; x != nil { // that of an informer that was retired is nil
			x.stop()
		}
	}
	if c.budget != nil {
		c.budget.forget(c)
	}
}
