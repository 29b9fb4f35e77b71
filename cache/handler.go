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
	// EveryStep has the handler told of every change by itself; nothing is merged, as
	// long as fewer than Limit changes wait for it. It is for a handler that counts or
	// records, and for one that wakes somebody who reads snapshots: merged changes that
	// lead back to what the handler knew are not told of, and who read a snapshot in
	// between would stay with what it saw. Such a handler must be quick.
	//
	// A handler that falls behind by Limit holds up nobody else. The changes that come from
	// there on are merged, one an object, until half of Limit has been handled. Objects
	// that come and go meanwhile are told of as added and then deleted, Limit of them at
	// most. The log names the handler, and [HandlerStatus] has how much waits and for how
	// long the running call has been running.
	EveryStep bool
	// CaughtUp is called by the handler's goroutine, between two calls of the handler, when
	// changes have been merged beyond Limit and all that waited has been handled. Who wakes
	// readers of snapshots has everything read again then, by [Registration.Resync] say. It
	// may be nil.
	CaughtUp func()
	// HoldUp is for a handler of every step that must have each of them, also where it
	// is slow: the informer reads on only after half of Limit has been handled, for all
	// its handlers. [HandlerStatus] says how long that has been. It is for an informer
	// that nobody else uses.
	HoldUp bool
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
	asked    atomic.Bool  // for a resync
	caughtUp func()
	said     atomic.Int64 // when the log last said that changes are merged, unix nanoseconds
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
	// now included. Only a handler that asks for it can hold it up: see HoldUp.
	HeldUp time.Duration
	// Merging: more changes wait for a handler of every step than its limit, and those
	// that come are merged.
	Merging bool
	Synced  bool
}

// Status returns what can be seen of the handler.
func (r *Registration) Status() HandlerStatus {
	s := HandlerStatus{Name: r.name, Handled: r.handled.Load(), Panics: r.panics.Load()}
	r.queue.mu.Lock()
	s.Waiting, s.Merged, s.Merging = r.queue.count, r.queue.merged, r.queue.over
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

// Resync has the handler told of every object, changed or not, when it has been told of all
// that waits now. It returns at once, and may be called from anywhere.
func (r *Registration) Resync() {
	r.asked.Store(true)
	r.queue.notify()
}

// push queues a change and keeps count of the initial ones.
func (r *Registration) push(d delta) {
	if d.initial {
		r.initial.Add(1)
	}
	dropped, over := r.queue.push(&d)
	if dropped {
		r.initialDone()
	}
	if over {
		r.sayOver()
	}
}

// sayOver logs that the handler is behind by its limit, and not at every time.
func (r *Registration) sayOver() {
	now := time.Now()
	if said := r.said.Load(); said != 0 && now.Sub(time.Unix(0, said)) < sayAgain {
		return
	}
	r.said.Store(now.UnixNano())
	busy := time.Duration(0)
	if began := r.busy.Load(); began != 0 {
		busy = now.Sub(time.Unix(0, began))
	}
	r.informer.log.Warn("a handler that is told of every step has fallen behind; further changes are merged until it catches up",
		"kind", r.informer.name, "handler", r.name, "waiting", r.queue.limit, "busy", busy.Round(time.Millisecond).String())
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
		if r.queue.caughtUp() {
			r.hasCaughtUp()
			continue
		}
		if r.asked.Swap(false) {
			r.informer.resync(r)
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

// hasCaughtUp calls CaughtUp. A panic of it is one of the handler.
func (r *Registration) hasCaughtUp() {
	r.informer.log.Warn("a handler has caught up; changes were merged meanwhile", "kind", r.informer.name, "handler", r.name)
	if r.caughtUp == nil {
		return
	}
	defer func() {
		if r.crash {
			return
		}
		if p := recover(); p != nil {
			r.panics.Add(1)
			r.informer.log.Error("a handler panicked as it had caught up", "handler", r.name, "kind", r.informer.name,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	r.caughtUp()
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
	if d.brief {
		r.call(&delta{key: d.key, new: d.last})
		d = &delta{key: d.key, old: d.last, last: d.last, stale: d.stale, initial: d.initial}
	}
	r.call(d)
}

// typed returns the call of a typed handler.
func typed[T object.Object](h Handler[T]) func(*delta) {
	return func(d *delta) {
		e := Event[T]{Kind: d.kind(), Old: Item[T]{d.old}, New: Item[T]{d.new}, Initial: d.initial, Stale: d.stale}
		// The last state of another object, which came and went unseen under the
		// name, says nothing of the one that the handler knew.
		if e.Kind == Deleted && d.last != nil && d.last.identity() == d.old.identity() {
			e.Old = Item[T]{d.last}
		}
		h(e)
	}
}
