// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"slices"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/journal"
	"github.com/setpoint-io/setpoint/watch/observe"
	"github.com/setpoint-io/setpoint/watch/settle"
)

// told is what a follower hands on: an event, or only how far it has come.
type told struct {
	follower *follower
	event    *event.Event
	change   observe.Change // what the event was made of
	seen     journal.Seen   // where the cursor of the object is then
	forget   bool           // the object is gone
	version  object.Version
	caughtUp bool // everything that had changed before the start has been handed on
	ended    bool // nothing more comes of this follower
	stepless bool // what follows is found by comparing

	// Of the teller.
	hidden  bool
	before  object.Version // of the follower, before this
	classes []event.Class  // of those that came after it and are not kept
}

const (
	// batch is how many events are committed together at most. A commit waits for the
	// disk, some milliseconds, however much is in it.
	batch = 512
	// unhurried is how long a cursor that moves past nothing that is told may wait for
	// company.
	unhurried = time.Second
	// lastWords is how long Tell may take once the watch ends.
	lastWords = 5 * time.Second
)

// teller tells of events, one after the other.
type teller struct {
	watch    *Watch
	in       chan told
	failed   chan error
	settler  *settle.Settler
	held     held
	versions map[*follower]object.Version
	caughtUp map[*follower]bool

	// What is to be told and committed next.
	out       []*event.Event
	routed    int // of out, those that are in commit
	commit    journal.Batch
	moved     map[*follower]bool
	committed map[*follower]object.Version
	due       time.Time // zero: there is nothing
}

func newTeller(w *Watch) *teller {
	t := &teller{
		watch: w, in: make(chan told), failed: make(chan error, 1),
		held:     held{},
		versions: map[*follower]object.Version{}, moved: map[*follower]bool{}, committed: map[*follower]object.Version{}, caughtUp: map[*follower]bool{},
	}
	t.settler = settle.New(settle.Options{Window: w.options.Window, Settle: w.options.Settle, Merge: func(first, last *event.Event) *event.Event {
		follower := t.held[id{first.Kind, first.Key}][0].follower
		return follower.observer.Event(t.held.between(first, last))
	}})
	return t
}

// hand hands on what a follower has to tell. It waits for room. When ctx has ended nothing
// is taken any more: the cursor must not move past something that was not. So ctx is the
// watch's, and none that ends before it.
func (t *teller) hand(ctx context.Context, what told) {
	if ctx.Err() != nil {
		return
	}
	select {
	case t.in <- what:
	case <-ctx.Done():
	}
}

// fail ends the watch.
func (t *teller) fail(err error) {
	select {
	case t.failed <- err:
	default:
	}
}

// run tells until ctx ends. What is held back then is told too.
func (t *teller) run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	found := t.watch.found
	for {
		if next := t.next(); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
		select {
		case what := <-t.in:
			t.take(what, time.Now())
			t.takeMore()
		case <-timer.C:
			t.letGo(t.settler.Due(time.Now()))
		case <-found:
			found = nil
		case err := <-t.failed:
			return err
		case <-ctx.Done():
			return t.end(ctx)
		}
		if err := t.tell(ctx, false); err != nil {
			if ctx.Err() != nil {
				return t.end(ctx)
			}
			return err
		}
		if t.watch.options.Once && found == nil && t.isCaughtUp() {
			return t.end(ctx)
		}
	}
}

// next returns when there is something to do without anybody handing anything on.
func (t *teller) next() time.Time {
	next := t.settler.Next()
	if next.IsZero() || !t.due.IsZero() && t.due.Before(next) {
		return t.due
	}
	return next
}

// takeMore takes what is waiting already, to commit it together. The settler may hold all of it:
// what is taken at once is bounded, so that what is due does not wait for a pause.
func (t *teller) takeMore() {
	for n := 0; n < batch && len(t.out) < batch && t.commit.Len() < batch; n++ {
		select {
		case what := <-t.in:
			t.take(what, time.Now())
		default:
			return
		}
	}
}

// end tells what is held back, and a little longer than ctx if it must.
func (t *teller) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	t.letGo(t.settler.Flush())
	return t.tell(ctx, true)
}

func (t *teller) isCaughtUp() bool {
	return !slices.ContainsFunc(t.watch.all(), func(f *follower) bool { return !t.caughtUp[f] })
}

// take takes what a follower hands on.
func (t *teller) take(what told, now time.Time) {
	f := what.follower
	// A kind that goes before it is read is waited for no longer.
	if what.caughtUp || what.ended && !t.caughtUp[f] {
		t.caughtUp[f] = what.caughtUp
		if t.isCaughtUp() {
			t.watch.log.Info("watching: what was there has been seen", "followed", len(t.watch.all()))
		}
	}
	if what.event != nil {
		t.watch.counts.seen.Add(1)
		object := id{what.event.Kind, what.event.Key}
		what.before = t.versions[f]
		what.hidden = !t.wanted(what.event) && !t.belongs(object, what.event)
		if what.hidden {
			t.watch.counts.hidden.Add(1)
		}
		switch {
		case !what.hidden:
			t.held[object] = append(t.held[object], what)
			t.letGo(t.settler.Add(what.event, now))
			t.held.compact(object)
		case len(t.held[object]) > 0:
			// What is held back comes first: the cursor goes past both with it.
			t.held[object] = append(t.held[object], what)
			t.held.compact(object)
		default:
			t.mark(what)
		}
	}
	if !what.version.IsZero() {
		t.versions[f] = what.version
		t.moved[f] = true
	}
	if what.stepless {
		t.forgetSteps(f)
	}
	if what.ended {
		t.letGo(t.settler.Flush()) // a kind that is followed anew is not told of before it
		delete(t.versions, f)
		delete(t.moved, f)
		delete(t.committed, f)
		delete(t.caughtUp, f)
	}
}

// letGo notes events to be told, and moves the cursor past what they stand for.
func (t *teller) letGo(events []*event.Event) {
	for _, e := range events {
		t.out = append(t.out, e)
		if last, ok := t.held.release(e); ok {
			t.mark(last)
		}
	}
}
