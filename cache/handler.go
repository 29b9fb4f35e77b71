// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/object"
)

// Handler handles the events of an informer. A goroutine of its own calls it, with one event at
// a time; after some seconds without events the goroutine ends, and the next event starts another
// one. If the handler panics, the informer logs the panic with its stack, counts it, and goes on with
// the next event.
type Handler[T object.Object] func(Event[T])

// HandlerOptions are the options of a handler.
type HandlerOptions struct {
	// Name is the handler's name in logs and statistics.
	Name string
	// Resync delivers every object once in each period, changed or not. 0 is never; a
	// period below a second is a second.
	Resync time.Duration
	// EveryStep delivers every change in an event of its own, in the order of the server,
	// while fewer than Limit changes wait. It is for a handler that counts or records, and
	// for one that wakes readers of snapshots: merged changes that lead back to the state
	// that the handler knows make no event, but a reader may have seen a state between.
	//
	// If Limit changes wait, the informer does not block. It merges further changes, to one
	// for each object, until half of Limit has been handled. It delivers objects that appear
	// and are deleted in that time as added and then deleted, Limit of them at most. Each
	// event still begins at the end of the event before it of the same object. The log names
	// the handler, and [HandlerStatus] has the number of changes that wait.
	EveryStep bool
	// CaughtUp is called when changes have been merged beyond Limit and no change waits any
	// more, between two calls of the handler. A handler that wakes readers of snapshots then
	// wakes all of them, by [Registration.Resync] say. It may be nil.
	CaughtUp func()
	// HoldUp is for a handler of every step that must get each of them. When Limit changes
	// wait, the informer stops reading until half of them have been handled, and all its
	// handlers wait. [HandlerStatus] has for how long. It is for an informer with one user.
	HoldUp bool
	// Limit is how many changes may wait for a handler of every step, besides the objects
	// of a list. 0 is 10,000.
	Limit int
}

const defaultLimit = 10_000

// Registration is a handler of an informer.
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
	ticks    *time.Timer // for resync; nil: never
	worker   worker
	ended    chan struct{} // closed when no call runs and none will
}

// Synced returns a channel that is closed once the informer has listed its kind and the handler
// has handled all objects of that list.
func (r *Registration) Synced() <-chan struct{} { return r.synced }

// Ended returns a channel that is closed once no call of the handler runs and none will begin:
// the handler was removed, or its informer has stopped.
func (r *Registration) Ended() <-chan struct{} { return r.ended }

// end notes that no call runs and none will begin.
func (r *Registration) end() {
	if r.ticks != nil {
		r.ticks.Stop()
	}
	close(r.ended)
}

// HandlerStatus is the status of a handler.
type HandlerStatus struct {
	Name    string
	Waiting int           // changes that wait for it
	Merged  uint64        // changes that were merged into another one
	Handled uint64        // events that it has handled
	Panics  uint64        // events in which it panicked
	Busy    time.Duration // how long the call that runs has been running
	Spent   time.Duration // in all calls that have ended
	// HeldUp is how long the informer has waited for this handler in all: see
	// HandlerOptions.HoldUp.
	HeldUp time.Duration
	// Merging is set if more changes wait for a handler of every step than its limit, so that
	// further ones are merged.
	Merging bool
	Synced  bool
}

// Status returns the status of the handler.
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

// Remove removes the handler from its informer. It may be called from anywhere, the handler
// included, and more than once. A call that is running ends normally. No call begins after
// Remove, except one that was about to begin while another goroutine called Remove.
func (r *Registration) Remove() {
	r.informer.forget(r)
	r.worker.close()
	r.queue.close()
}

// Resync delivers every object, changed or not, after all events that wait now. It returns at
// once, and may be called from anywhere.
func (r *Registration) Resync() {
	r.asked.Store(true)
	r.worker.notify()
}

// behind reports whether many changes wait for the handler.
func (r *Registration) behind() bool {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	return r.queue.count >= behindFrom
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

// sayOver logs that the handler is behind by its limit, once in a while.
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
	r.informer.log.Warn("a handler that receives every event has fallen behind; further events of an object are merged until it catches up",
		"kind", r.informer.name, "handler", r.name, "waiting", r.queue.limit, "busy", busy.Round(time.Millisecond).String())
}

// initialDone counts down; the last one closes synced.
func (r *Registration) initialDone() {
	if r.initial.Add(-1) == 0 {
		close(r.synced)
	}
}

// work calls the handler until no change waits, or ctx ends.
func (r *Registration) work(ctx context.Context) {
	for ctx.Err() == nil {
		switch d := r.queue.pop(); {
		case d != nil:
			r.handle(d)
		case r.queue.caughtUp():
			r.hasCaughtUp()
		case r.asked.Swap(false):
			r.informer.resync(r)
		default:
			return
		}
	}
}

// tick asks for a resync, and for the next one.
func (r *Registration) tick() {
	if r.worker.isClosed() {
		return
	}
	r.Resync()
	r.ticks.Reset(r.period())
}

func (r *Registration) period() time.Duration { return max(r.resync, time.Second) }

// hasCaughtUp calls CaughtUp. A panic in it counts as one of the handler.
func (r *Registration) hasCaughtUp() {
	r.informer.log.Warn("a handler has caught up; changes were merged meanwhile", "kind", r.informer.name, "handler", r.name)
	if r.caughtUp == nil {
		return
	}
	defer func() {
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
		if p := recover(); p != nil {
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
	defer r.informer.now().content.handouts.deliver(d, r.name)()
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
		// The last state may be that of another object of the name, which appeared and
		// was deleted before the handler saw it.
		if e.Kind == Deleted && d.last != nil && d.last.sameObject(d.old) {
			e.Old = Item[T]{d.last}
		}
		h(e)
	}
}
