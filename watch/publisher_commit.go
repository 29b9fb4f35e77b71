// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/journal"
)

// mark adds the cursor of an object to the next commit.
func (p *publisher) mark(what report) {
	if p.watch.cursor.none() {
		return
	}
	p.soon()
	if what.forget {
		p.commit.Forget(what.follower.name, what.event.Key)
		return
	}
	p.commit.Seen(what.follower.name, what.event.Key, what.seen)
}

// soon schedules a commit, if none is due already.
func (p *publisher) soon() {
	if p.due.IsZero() {
		p.due = time.Now().Add(unhurried)
	}
}

// publish commits the events that are ready. If only the cursor moves, the commit waits for more:
// each commit waits for the disk, and changes that are not committed are only read again.
func (p *publisher) publish(ctx context.Context, now bool) error {
	if p.watch.options.Because != nil && len(p.out) > p.explained {
		p.watch.options.Because(ctx, p.out[p.explained:])
		p.explained = len(p.out)
	}
	if p.watch.cursor.none() {
		return p.tellAll(ctx, now)
	}
	if len(p.moved) > 0 {
		p.soon()
	}
	hurry := now || len(p.out) > 0 || p.commit.Len() >= batch
	if next := p.last.Add(pace); hurry && !now && len(p.out) < batch && p.commit.Len() < batch && time.Now().Before(next) {
		if p.due.IsZero() || next.Before(p.due) {
			p.due = next
		}
		return nil
	}
	if p.due.IsZero() || !hurry && time.Now().Before(p.due) {
		return nil
	}
	for ; p.routed < len(p.out); p.routed++ {
		if err := p.route(p.out[p.routed]); err != nil {
			return err
		}
	}
	safe := p.safe()
	for f, version := range safe {
		if version != p.committed[f] {
			p.commit.Version(f.name, string(version))
		}
	}
	if p.commit.Len() > 0 {
		if err := p.commitAll(ctx); err != nil {
			return err
		}
	}
	for f, version := range safe {
		p.committed[f] = version
		if version == p.versions[f] { // else the settler holds something, and the cursor moves on with it
			delete(p.moved, f)
		}
	}
	p.done()
	p.due, p.last = time.Time{}, time.Now()
	p.commit.Reset()
	return nil
}

// tellAll publishes the events that are ready where there is no cursor. last says that ctx is that of the last words.
func (p *publisher) tellAll(ctx context.Context, last bool) error {
	if len(p.out) == 0 {
		return nil
	}
	if !last {
		var cancel context.CancelFunc
		ctx, cancel = lasting(ctx)
		defer cancel()
	}
	if err := p.watch.options.Tell(ctx, p.out); err != nil {
		return fmt.Errorf("publishing events: %w", err)
	}
	p.done()
	return nil
}

// lasting returns a context that ends lastWords after ctx. Tell may have told a part of the events when the watch is
// asked to end: they would be told twice if it ended there and began again.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, cancel) })
	return longer, func() { stop(); cancel() }
}

func (p *publisher) done() {
	for _, e := range p.out {
		if e.Verb != event.Existing {
			p.watch.counts.told.Add(1)
		}
		if e.Merged == 0 {
			p.watch.counts.lag.Store(int64(time.Since(e.Time)))
		}
	}
	p.out, p.routed, p.explained = nil, 0, 0
}

// route puts an event into the outboxes of the sinks that it goes to.
func (p *publisher) route(e *event.Event) error {
	sinks, err := p.watch.options.Route(e)
	if err != nil {
		p.watch.counts.failed.Add(1)
		p.watch.log.Debug("a condition of a route cannot be decided, and is taken as not met", "kind", e.Kind.String(), "object", e.Key.String(), "error", err)
	}
	if len(sinks) == 0 {
		return nil
	}
	data, err := fit(e, &p.watch.options)
	if err != nil {
		return err
	}
	for _, sink := range sinks {
		p.commit.Event(sink, e.ID, data)
	}
	return nil
}

// safe returns the versions up to which everything of a follower has been published, for those
// whose cursor moves: up to the first event that the settler holds, and not beyond.
func (p *publisher) safe() map[*follower]object.Version {
	safe := make(map[*follower]object.Version, len(p.moved))
	for f := range p.moved {
		// Before, the version says nothing of the objects still to come. A follower that
		// replays has passed them all.
		if f.known || f.begun.Load() {
			safe[f] = p.versions[f]
		}
	}
	p.held.stop(safe)
	maps.DeleteFunc(safe, func(_ *follower, version object.Version) bool { return version.IsZero() })
	return safe
}

// forgetSteps makes the next start compare too, until the cursor of the kind moves again.
// Otherwise it would publish steps that are older than what was found by comparing.
func (p *publisher) forgetSteps(f *follower) {
	p.release(p.settler.Flush()) // the cursor does not go back to before what is held
	p.soon()
	p.commit.Version(f.name, "")
	delete(p.versions, f)
	delete(p.moved, f)
	delete(p.committed, f)
}

// commitAll commits, and waits while the queue of a sink is full. Everything waits then, and the log
// says so: a late event is better than a lost one.
func (p *publisher) commitAll(ctx context.Context) error {
	err := p.watch.options.Journal.Commit(&p.commit)
	var full *journal.FullError
	if !errors.As(err, &full) {
		return err
	}
	p.watch.log.Warn("a sink takes nothing and its queue is full: no sink gets events until it has room", "sink", full.Sink, "waiting", full.Waiting)
	if p.watch.options.Once {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.watch.patience)
		defer cancel()
	}
	if err = p.watch.options.Journal.CommitWait(ctx, &p.commit); err == nil {
		p.watch.log.Warn("there is room again", "sink", full.Sink)
	}
	return err
}
