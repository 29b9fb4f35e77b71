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

// report is what a follower submits: an event, or only how far it has come.
type report struct {
	follower *follower
	event    *event.Event
	change   observe.Change // of which the event was made
	seen     journal.Seen   // where the cursor of the object is then
	forget   bool           // the object is gone
	version  object.Version // where the cursor of the follower is then
	caughtUp bool           // everything that had changed before the start has been submitted
	ended    bool           // the follower submits nothing more
	stepless bool           // the reports that follow come from comparing

	// Set by the publisher.
	hidden  bool
	before  object.Version // where the cursor of the follower was before this report
	classes []event.Class  // of reports that came after this one and were dropped
}

const (
	// batch is how many events are committed together at most. A commit waits for the
	// disk, some milliseconds, however much is in it.
	batch = 512
	// unhurried is how long a cursor may wait that moves past nothing that is published.
	unhurried = time.Second
	// lastWords is how long Tell may take once the watch ends.
	lastWords = 5 * time.Second
)

// publisher publishes events, one after the other.
type publisher struct {
	watch    *Watch
	in       chan report
	failed   chan error
	settler  *settle.Settler
	held     held
	versions map[*follower]object.Version
	caughtUp map[*follower]bool

	// What is published and committed next.
	out       []*event.Event
	routed    int // of out, those that are in commit
	commit    journal.Batch
	moved     map[*follower]bool
	committed map[*follower]object.Version
	due       time.Time // zero: there is nothing
}

func newPublisher(w *Watch) *publisher {
	t := &publisher{
		watch: w, in: make(chan report), failed: make(chan error, 1),
		held:     held{},
		versions: map[*follower]object.Version{}, moved: map[*follower]bool{}, committed: map[*follower]object.Version{}, caughtUp: map[*follower]bool{},
	}
	t.settler = settle.New(settle.Options{Window: w.options.Window, Settle: w.options.Settle, Merge: func(first, last *event.Event) *event.Event {
		follower := t.held[id{first.Kind, first.Key}][0].follower
		return follower.observer.Event(t.held.between(first, last))
	}})
	return t
}

// submit adds a report, and waits for room. After the end of ctx it adds nothing: the cursor
// must not move past a report that was not added.
func (t *publisher) submit(ctx context.Context, what report) {
	if ctx.Err() != nil {
		return
	}
	select {
	case t.in <- what:
	case <-ctx.Done():
	}
}

// fail ends the watch.
func (t *publisher) fail(err error) {
	select {
	case t.failed <- err:
	default:
	}
}

// run publishes until ctx ends. Then it publishes what the settler holds.
func (t *publisher) run(ctx context.Context) error {
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
			t.release(t.settler.Due(time.Now()))
		case <-found:
			found = nil
		case err := <-t.failed:
			return err
		case <-ctx.Done():
			return t.end(ctx)
		}
		if err := t.publish(ctx, false); err != nil {
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

// next returns when there is something to do without a report.
func (t *publisher) next() time.Time {
	next := t.settler.Next()
	if next.IsZero() || !t.due.IsZero() && t.due.Before(next) {
		return t.due
	}
	return next
}

// takeMore receives the reports that wait already, to commit them together. Their number is
// bounded: the settler may hold all of them, and events that are due must not wait for a pause.
func (t *publisher) takeMore() {
	for n := 0; n < batch && len(t.out) < batch && t.commit.Len() < batch; n++ {
		select {
		case what := <-t.in:
			t.take(what, time.Now())
		default:
			return
		}
	}
}

// end publishes what the settler holds. That may take a little longer than ctx.
func (t *publisher) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	t.release(t.settler.Flush())
	return t.publish(ctx, true)
}

func (t *publisher) isCaughtUp() bool {
	return !slices.ContainsFunc(t.watch.all(), func(f *follower) bool { return !t.caughtUp[f] })
}

// take processes a report.
func (t *publisher) take(what report, now time.Time) {
	f := what.follower
	// A kind that goes before it was read counts as caught up.
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
			t.release(t.settler.Add(what.event, now))
			t.held.compact(object)
		case len(t.held[object]) > 0:
			// What is held comes first: the cursor goes past both with it.
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
		t.release(t.settler.Flush()) // before the events of a follower that comes after it
		delete(t.versions, f)
		delete(t.moved, f)
		delete(t.committed, f)
		delete(t.caughtUp, f)
	}
}

// release adds events to the next commit, and moves the cursor past what they stand for.
func (t *publisher) release(events []*event.Event) {
	for _, e := range events {
		t.out = append(t.out, e)
		if last, ok := t.held.release(e); ok {
			t.mark(last)
		}
	}
}
