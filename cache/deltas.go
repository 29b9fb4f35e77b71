// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"sync"

	"github.com/setpoint-io/setpoint/object"
)

// delta is a change that waits for a handler.
type delta struct {
	key     object.Key
	old     *entry // what the handler knows; nil: nothing
	new     *entry // what is true; nil: the object is gone
	last    *entry // where new is nil: the last state seen
	initial bool
	stale   bool
	resync  bool

	before, after *delta
}

// deltas is the queue before one handler. It holds one delta an object, in the
// order in which the objects first changed; later changes are merged into the
// delta that waits. A handler that is to be told of every step has nothing merged;
// its queue has a limit instead, beyond which the informer waits before it reads on.
type deltas struct {
	limit   int // 0: changes are merged
	mu      sync.Mutex
	count   int
	waiting map[object.Key]*delta // empty if there is a limit
	most    int                   // that waiting has held
	ring    delta                 // sentinel: ring.after is the first, ring.before the last
	closed  bool
	wake    chan struct{} // has room for one
	room    chan struct{} // closed when there is room again; nil while there is
	merged  uint64
}

// waitingKept is for how many keys a queue that is empty keeps room.
const waitingKept = 1024

func newDeltas(limit int) *deltas {
	d := &deltas{limit: limit, waiting: map[object.Key]*delta{}, wake: make(chan struct{}, 1)}
	d.ring.before, d.ring.after = &d.ring, &d.ring
	return d
}

// push adds a change. dropped reports whether an initial item went with it
// unseen: an object that came and went is not told of.
func (d *deltas) push(n *delta) (dropped bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	if w := d.waiting[n.key]; w != nil {
		d.merged++
		w.new, w.last, w.stale = n.new, n.last, n.stale
		// A real change outweighs a resync that waits, and a resync adds nothing
		// to a change that waits.
		w.resync = w.resync && n.resync
		if w.old == nil && w.new == nil {
			d.unlink(w)
			return w.initial
		}
		return false
	}
	if d.limit == 0 {
		d.waiting[n.key] = n
	}
	d.count++
	if d.limit > 0 && d.count >= d.limit && d.room == nil {
		d.room = make(chan struct{})
	}
	n.before, n.after = d.ring.before, &d.ring
	n.before.after, n.after.before = n, n
	select {
	case d.wake <- struct{}{}:
	default:
	}
	return false
}

func (d *deltas) unlink(n *delta) {
	d.count--
	if d.limit == 0 {
		delete(d.waiting, n.key)
		// A map keeps the room of the most that it ever held: after a first state 80
		// bytes for each object, for as long as the handler is there.
		if d.most = max(d.most, d.count+1); d.count == 0 && d.most > waitingKept {
			d.waiting, d.most = map[object.Key]*delta{}, 0
		}
	}
	// Half empty, so that informer and handler do not take turns at each change.
	if d.room != nil && d.count <= d.limit/2 {
		close(d.room)
		d.room = nil
	}
	n.before.after, n.after.before = n.after, n.before
	n.before, n.after = nil, nil
}

// pop takes the first change, or returns nil.
func (d *deltas) pop() *delta {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := d.ring.after
	if first == &d.ring {
		return nil
	}
	d.unlink(first)
	return first
}

// close lets go of what waits and takes nothing more.
func (d *deltas) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	clear(d.waiting)
	d.count = 0
	if d.room != nil {
		close(d.room)
		d.room = nil
	}
	d.ring.before, d.ring.after = &d.ring, &d.ring
}

// full returns a channel that is closed when there is room again; nil if there is.
func (d *deltas) full() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.room
}

// kind says what happened, from what is known to what is true.
func (d *delta) kind() EventKind {
	switch {
	case d.new == nil:
		return Deleted
	case d.old == nil:
		return Added
	case d.old.identity() != d.new.identity():
		return Replaced
	case d.resync:
		return Resync
	}
	return Updated
}
