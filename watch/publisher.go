// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"maps"
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
	signs    signs          // of the states of the event
	restored object.Key     // an object that has not changed since the last run, and had troubles then

	// Set by the publisher.
	hidden  bool
	before  object.Version // where the cursor of the follower was before this report
	classes []event.Class  // of reports that came after this one and were dropped
}

const (
	// batch is how many events are committed together at most. A commit waits for the
	// disk, some milliseconds, however much is in it.
	batch = 512
	// queue is how many reports wait while a commit waits for the disk, so that the next commit has all of them. Without it,
	// a follower had made one report by then, and a disk that takes 10 ms published 200 events a second.
	queue = 64
	// pace is the time between two commits with events, if there are few. Each costs two system calls and wakes three
	// goroutines: at 340 changes a second, commits of single events were a fifth of the CPU. The first one after a pause is at once.
	pace = 10 * time.Millisecond
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
	underway map[id]*follower // of objects whose last summary said that they are not at rest yet
	troubles troubles
	versions map[*follower]object.Version
	caughtUp map[*follower]bool

	// What is published and committed next.
	out       []*event.Event
	routed    int // of out, those that are in commit
	explained int // of out, those whose causes were looked for
	commit    journal.Batch
	moved     map[*follower]bool
	committed map[*follower]object.Version
	due       time.Time // zero: there is nothing
	last      time.Time // the last commit ended
}

func newPublisher(w *Watch) *publisher {
	p := &publisher{
		watch: w, in: make(chan report, queue), failed: make(chan error, 1),
		held: held{}, underway: map[id]*follower{},
		troubles: newTroubles(),
		versions: map[*follower]object.Version{}, moved: map[*follower]bool{}, committed: map[*follower]object.Version{}, caughtUp: map[*follower]bool{},
	}
	p.settler = settle.New(settle.Options{Window: w.options.Window, Settle: w.options.Settle, Merge: func(first, last *event.Event) *event.Event {
		follower := p.held[id{first.Kind, first.Key}][0].follower
		return follower.observer.Event(p.held.between(first, last))
	}})
	return p
}

// submit adds a report, and waits for room. After the end of ctx it adds nothing: the cursor
// must not move past a report that was not added.
func (p *publisher) submit(ctx context.Context, what report) {
	if ctx.Err() != nil {
		return
	}
	select {
	case p.in <- what:
	case <-ctx.Done():
	}
}

// fail ends the watch.
func (p *publisher) fail(err error) {
	select {
	case p.failed <- err:
	default:
	}
}

// run publishes until ctx ends. Then it publishes what the settler holds.
func (p *publisher) run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	found := p.watch.found
	for {
		if next := p.next(); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
		select {
		case what := <-p.in:
			p.take(what, time.Now())
			p.takeMore()
		case <-timer.C:
			p.release(p.settler.Due(time.Now()))
			p.observeDue(time.Now())
		case <-found:
			found = nil
		case err := <-p.failed:
			return err
		case <-ctx.Done():
			return p.end(ctx)
		}
		if err := p.publish(ctx, false); err != nil {
			if ctx.Err() != nil && !p.watch.cursor.none() {
				return p.end(ctx) // a commit is made as a whole, and can be made again
			}
			return err
		}
		if p.watch.options.Once && found == nil && p.isCaughtUp() {
			p.observeDue(time.Now())
			return p.end(ctx)
		}
	}
}

// next returns when there is something to do without a report.
func (p *publisher) next() time.Time {
	var next time.Time
	for _, due := range []time.Time{p.settler.Next(), p.troubles.tracker.Next(), p.due} {
		if !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return next
}

// takeMore receives the reports that wait already, to commit them together. Their number is
// bounded: the settler may hold all of them, and events that are due must not wait for a pause.
func (p *publisher) takeMore() {
	for n := 0; n < batch && len(p.out) < batch && p.commit.Len() < batch; n++ {
		select {
		case what := <-p.in:
			p.take(what, time.Now())
		default:
			return
		}
	}
}

// end publishes what the settler holds. That may take a little longer than ctx.
func (p *publisher) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	p.release(p.settler.Flush())
	return p.publish(ctx, true)
}

func (p *publisher) isCaughtUp() bool {
	return !slices.ContainsFunc(p.watch.all(), func(f *follower) bool { return !p.caughtUp[f] })
}

// take processes a report.
func (p *publisher) take(what report, now time.Time) {
	f := what.follower
	// A kind that goes before it was read counts as caught up.
	if what.caughtUp || what.ended && !p.caughtUp[f] {
		p.caughtUp[f] = what.caughtUp
		if p.isCaughtUp() {
			p.watch.judge.listed()
			p.watch.log.Info("watching: what was there has been seen", "followed", len(p.watch.all()))
		}
	}
	if what.event != nil {
		p.watch.counts.seen.Add(1)
		object := id{what.event.Kind, what.event.Key}
		what.before = p.versions[f]
		news := p.observe(&what, now)
		what.hidden = !p.wanted(what.event) && !p.belongs(object, what.event)
		if what.hidden {
			p.watch.counts.hidden.Add(1)
		}
		switch {
		case !what.hidden:
			p.held[object] = append(p.held[object], what)
			p.release(p.settler.Add(what.event, now))
			p.held.compact(object)
		case len(p.held[object]) > 0:
			// What is held comes first: the cursor goes past both with it.
			p.held[object] = append(p.held[object], what)
			p.held.compact(object)
		default:
			p.mark(what)
		}
		if what.event.Verb == event.Deleted {
			delete(p.underway, object)
		}
		p.tell(object, news)
	}
	if what.restored != (object.Key{}) {
		p.restore(what, now)
	}
	if !what.version.IsZero() {
		p.versions[f] = what.version
		p.moved[f] = true
	}
	if what.stepless {
		p.forgetSteps(f)
	}
	if what.ended {
		p.release(p.settler.Flush()) // before the events of a follower that comes after it
		p.troubles.leave(f)
		delete(p.versions, f)
		delete(p.moved, f)
		delete(p.committed, f)
		delete(p.caughtUp, f)
		maps.DeleteFunc(p.underway, func(_ id, of *follower) bool { return of == f })
	}
}

// release adds events to the next commit, and moves the cursor past what they stand for.
func (p *publisher) release(events []*event.Event) {
	for _, e := range events {
		p.out = append(p.out, e)
		if last, ok := p.held.release(e); ok {
			p.mark(last)
			p.goesOn(e, last.follower)
		}
		if object := (id{e.Kind, e.Key}); e.Verb != event.Deleted {
			p.out = append(p.out, p.troubles.waiting[object]...)
			delete(p.troubles.waiting, object)
		}
	}
}
