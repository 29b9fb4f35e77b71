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
	old     *entry // the state that the handler had last; nil: none
	new     *entry // the newest state; nil: the object was deleted
	last    *entry // of a deleted object: the last state of the store
	initial bool
	stale   bool
	resync  bool
	step    bool // it counts towards the limit
	brief   bool // the object was created and deleted, and the handler is notified of both

	before, after *delta
}

// deltas is the queue of one handler. It holds one delta for each object, in the order in
// which the objects first changed. A later change is merged into the delta that waits.
//
// For a handler of every step, nothing is merged until limit changes wait. Then either the
// informer waits before it reads on (holdUp), or the queue is over its limit: further changes
// are merged until half of those that wait have been handled. Up to limit objects that are
// created and deleted meanwhile are kept. lost reports that steps were merged.
type deltas struct {
	limit   int // 0: changes are merged
	holdUp  bool
	mu      sync.Mutex
	count   int
	waiting map[object.Key]*delta // the last delta of each key, if changes may be merged into it
	most    int                   // how many keys waiting has held
	ring    delta                 // sentinel: ring.after is the first, ring.before the last
	closed  bool
	room    chan struct{} // closed when there is room again; nil while there is
	merged  uint64

	steps  int // deltas that wait, without those of the first state and of resyncs
	over   bool
	briefs int // deltas that wait of objects that were created and deleted
	lost   bool
}

// waitingKept is for how many keys a queue that is empty keeps room.
const waitingKept = 1024

func newDeltas(limit int) *deltas {
	d := &deltas{limit: limit, waiting: map[object.Key]*delta{}}
	d.ring.before, d.ring.after = &d.ring, &d.ring
	return d
}

// push adds a change. dropped reports whether the change removed an object of the first state
// from the queue: the handler is not notified of an object that was created and deleted. over
// reports whether this change has brought the queue over its limit.
func (d *deltas) push(n *delta) (dropped, over bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false, false
	}
	over = d.over
	merges := d.merges(n)
	over = d.over && !over
	if merges {
		if w := d.waiting[n.key]; w != nil {
			return d.merge(w, n), over
		}
		d.waiting[n.key] = n
	}
	d.count++
	if n.step {
		d.steps++
	}
	if d.holdUp && d.count >= d.limit && d.room == nil {
		d.room = make(chan struct{})
	}
	n.before, n.after = d.ring.before, &d.ring
	n.before.after, n.after.before = n, n
	return false, over
}

// merges reports whether a change may be merged.
func (d *deltas) merges(n *delta) bool {
	if d.limit == 0 {
		return true
	}
	n.step = !n.initial && !n.resync
	if d.steps >= d.limit && !d.holdUp {
		d.over = true
	}
	return d.over
}

// merge adds a change to one of the same object that waits.
func (d *deltas) merge(w, n *delta) (dropped bool) {
	d.merged++
	w.new, w.last, w.stale = n.new, n.last, n.stale
	// A change and a resync together are a change.
	w.resync = w.resync && n.resync
	d.lost = d.lost || d.limit > 0 && !n.resync
	if w.brief {
		w.brief = false
		d.briefs--
	}
	if w.old != nil || w.new != nil {
		return false
	}
	if d.limit == 0 || d.briefs >= d.limit {
		d.unlink(w)
		return w.initial
	}
	w.brief = true
	d.briefs++
	return false
}

func (d *deltas) unlink(n *delta) {
	d.count--
	if d.waiting[n.key] == n {
		delete(d.waiting, n.key)
	}
	if n.step {
		d.steps--
	}
	if n.brief {
		d.briefs--
	}
	// A map keeps its memory when keys are deleted: after a first state that is 80 bytes for
	// each object, for as long as the handler exists.
	if d.most = max(d.most, d.count+1); d.count == 0 && d.most > waitingKept {
		d.waiting, d.most = map[object.Key]*delta{}, 0
	}
	// The informer goes on when the queue is half empty. With room for one change only,
	// informer and handler would wait for each other at each change.
	if d.room != nil && d.count <= d.limit/2 {
		close(d.room)
		d.room = nil
	}
	if d.over && d.steps <= d.limit/2 {
		d.over = false
		clear(d.waiting) // no change is merged into those that wait
	}
	n.before.after, n.after.before = n.after, n.before
	n.before, n.after = nil, nil
}

// caughtUp reports once, when nothing waits, that steps have been merged.
func (d *deltas) caughtUp() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.count > 0 || !d.lost {
		return false
	}
	d.lost = false
	return true
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

// close removes all changes and takes no more.
func (d *deltas) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	clear(d.waiting)
	d.count, d.steps, d.briefs, d.over, d.lost = 0, 0, 0, false, false
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

// kind returns what happened between the state that the handler had and the newest one.
func (d *delta) kind() EventKind {
	switch {
	case d.new == nil:
		return Deleted
	case d.old == nil:
		return Added
	case !d.old.sameObject(d.new):
		return Replaced
	case d.resync:
		return Resync
	}
	return Updated
}
