// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/object"
)

// Handler is told of changes, one at a time, by a goroutine of its own. A panic
// is contained to the event that it came from: it is logged with its stack and
// counted, and the next event follows; see [HandlerOptions] for another way.
type Handler[T object.Object] func(Event[T])

// HandlerOptions changes how a handler is told.
type HandlerOptions struct {
	// Name says who it is in logs and statistics.
	Name string
	// Resync has the handler told of every object in this period, changed or
	// not. 0 is never; below a second is a second.
	Resync time.Duration
	// EveryStep has the handler told of every change by itself; nothing is merged.
	// It is for a handler that counts or records, and for one that wakes somebody
	// who reads snapshots: merged changes that lead back to what the handler knew
	// are not told of, and who read a snapshot in between would stay with what it
	// saw. Such a handler must be quick. When Limit changes wait for it, the
	// informer reads on only after half of them have been handled, for all its
	// handlers; [HandlerStatus] says how long that has been, and the log names the
	// handler.
	EveryStep bool
	// Crash lets a panic of the handler go on, which ends the program: for one that
	// is better started anew than going on with an event lost.
	Crash bool
	// Limit is how many changes may wait for a handler that is told of every step,
	// beside the objects of a whole state, which come all at once. 0 is 10,000.
	Limit int
}

const defaultLimit = 10_000

// Registration is a handler that has been added.
type Registration struct {
	informer *informer
	name     string
	queue    *deltas
	call     func(*delta)

	synced   chan struct{} // closed once the initial items have been handled
	initial  atomic.Int64  // initial items not handled yet, and one until upstream is synced
	handled  atomic.Uint64
	panics   atomic.Uint64
	busy     atomic.Int64 // when the running call began, unix nanoseconds; 0: none runs
	spent    atomic.Int64 // in calls that have ended, nanoseconds
	held     atomic.Int64 // how long the informer has waited for room, nanoseconds
	holding  atomic.Int64 // since when it waits, unix nanoseconds; 0: it does not
	resync   time.Duration
	crash    bool
	stop     context.CancelFunc
	stopOnce sync.Once
}

// Synced returns a channel that is closed once the informer has the state of its
// kind and the handler has been told of all that was there then.
func (r *Registration) Synced() <-chan struct{} { return r.synced }

// HandlerStatus is what can be seen of a handler from outside.
type HandlerStatus struct {
	Name    string
	Waiting int           // changes that it has not been told of
	Merged  uint64        // changes that were merged into one that waited
	Handled uint64        // events that it has been told of
	Panics  uint64        // events in which it panicked
	Busy    time.Duration // how long the call that runs has been running
	Spent   time.Duration // in all calls that have ended
	// HeldUp is how long the informer has waited for this handler, all in all and
	// now included. Only a handler that is told of every step can hold it up.
	HeldUp time.Duration
	Synced bool
}

// Status returns what can be seen of the handler.
func (r *Registration) Status() HandlerStatus {
	s := HandlerStatus{Name: r.name, Handled: r.handled.Load(), Panics: r.panics.Load()}
	r.queue.mu.Lock()
	s.Waiting, s.Merged = r.queue.count, r.queue.merged
	r.queue.mu.Unlock()
	if began := r.busy.Load(); began != 0 {
		s.Busy = time.Since(time.Unix(0, began))
	}
	s.Spent, s.HeldUp = time.Duration(r.spent.Load()), time.Duration(r.held.Load())
	if since := r.holding.Load(); since != 0 {
		s.HeldUp += time.Since(time.Unix(0, since))
	}
	select {
	case <-r.synced:
		s.Synced = true
	default:
	}
	return s
}

// Remove stops telling the handler. It may be called from anywhere, the handler
// itself included, and more than once. A Registration is of one informer, so there is
// no other that it could be taken from by mistake. A call that runs comes to its end; none
// begins after Remove has returned, unless Remove was called by another goroutine
// while it was about to begin.
func (r *Registration) Remove() {
	r.stopOnce.Do(func() {
		r.informer.forget(r)
		r.stop()
		r.queue.close()
	})
}

// push queues a change and keeps count of the initial ones.
func (r *Registration) push(d delta) {
	if d.initial {
		r.initial.Add(1)
	}
	if r.queue.push(&d) {
		r.initialDone()
	}
}

// initialDone counts down; the last one closes synced.
func (r *Registration) initialDone() {
	if r.initial.Add(-1) == 0 {
		close(r.synced)
	}
}

// run tells the handler until ctx ends.
func (r *Registration) run(ctx context.Context) {
	var tick <-chan time.Time
	if r.resync > 0 {
		ticker := time.NewTicker(max(r.resync, time.Second))
		defer ticker.Stop()
		tick = ticker.C
	}
	for ctx.Err() == nil {
		if d := r.queue.pop(); d != nil {
			r.handle(d)
			continue
		}
		select {
		case <-r.queue.wake:
		case <-tick:
			r.informer.resync(r)
		case <-ctx.Done():
		}
	}
}

func (r *Registration) handle(d *delta) {
	began := time.Now()
	r.busy.Store(began.UnixNano())
	defer func() {
		if r.crash {
			// The panic goes on from here.
		} else if p := recover(); p != nil {
			r.panics.Add(1)
			r.informer.log.Error("a handler panicked; the event is lost to it, the next one follows",
				"handler", r.name, "kind", r.informer.name, "object", d.key.String(), "event", d.kind().String(),
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
		r.busy.Store(0)
		r.spent.Add(int64(time.Since(began)))
		r.handled.Add(1)
		if d.initial {
			r.initialDone()
		}
	}()
	r.call(d)
}

// typed returns the call of a typed handler.
func typed[T object.Object](h Handler[T]) func(*delta) {
	return func(d *delta) {
		e := Event[T]{Kind: d.kind(), Old: Item[T]{d.old}, New: Item[T]{d.new}, Initial: d.initial, Stale: d.stale}
		// The last state of another object, which came and went unseen under the
		// name, says nothing of the one that the handler knew.
		if e.Kind == Deleted && d.last != nil && d.last.identity() == d.old.identity() {
			e.Old, e.known = Item[T]{d.last}, e.Old
		}
		h(e)
	}
}

// Filtered has a handler see only the objects that keep holds for: one that comes to
// be kept is added to it, one that is kept no longer is deleted, whatever happened to
// the object itself. keep must say the same of the same state each time.
func Filtered[T object.Object](keep func(Item[T]) bool, h Handler[T]) Handler[T] {
	return func(e Event[T]) {
		known := e.Old
		if e.known.Exists() { // what h was told before went by it
			known = e.known
		}
		old, now := known.Exists() && keep(known), e.New.Exists() && keep(e.New)
		switch {
		case old && now:
		case old:
			e.Kind, e.New = Deleted, Item[T]{}
			if !keep(e.Old) {
				e.Old = known
			}
		case now:
			e.Kind, e.Old = Added, Item[T]{}
		default:
			return
		}
		h(e)
	}
}
