// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"sync/atomic"
	"unsafe"

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

// keep counts an object that was decoded now, and offers it to the budget if it is likely to be
// read again.
func (c *content) keep(e *entry, d *decoded, o object.Object, likely bool) {
	if c.budget == nil {
		return
	}
	c.budget.decodes.Add(1)
	if likely && c.budget.limit > 0 {
		c.offer(e, d, o)
	}
}

// keepHeld offers an object that another reader holds, which costs no memory now. If the budget is
// full, the object waits until it has to be decoded again.
func (c *content) keepHeld(e *entry, d *decoded, o object.Object) {
	if c.budget != nil && c.budget.limit > 0 && !c.budget.full.Load() {
		c.offer(e, d, o)
	}
}

func (c *content) offer(e *entry, d *decoded, o object.Object) {
	k := &kept{object: pointerTo(o), decoded: d, content: c, bytes: c.weights.of(o, e.rawSize()) + keptSize}
	if !c.budget.add(k) {
		return
	}
	// The object may have changed meanwhile. The writer stores the new state first and then
	// releases the old one, so either the writer finds k, or this finds the new state.
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

// stop drops all decoded objects, when the informer stops.
func (c *content) stop() {
	c.stopped.Store(true)
	c.recent.stop()
	if c.budget != nil {
		c.budget.forget(c)
	}
}
