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
func (t *publisher) mark(what report) {
	if t.watch.cursor.none() {
		return
	}
	t.soon()
	if what.forget {
		t.commit.Forget(what.follower.name, what.event.Key)
		return
	}
	t.commit.Seen(what.follower.name, what.event.Key, what.seen)
}

// soon schedules a commit, if none is due already.
func (t *publisher) soon() {
	if t.due.IsZero() {
		t.due = time.Now().Add(unhurried)
	}
}

// publish commits the events that are ready. If only the cursor moves, the commit waits for more:
// each commit waits for the disk, and changes that are not committed are only read again.
func (t *publisher) publish(ctx context.Context, now bool) error {
	if t.watch.cursor.none() {
		if len(t.out) == 0 {
			return nil
		}
		if err := t.watch.options.Tell(ctx, t.out); err != nil {
			return fmt.Errorf("publishing events: %w", err)
		}
		t.done()
		return nil
	}
	if len(t.moved) > 0 {
		t.soon()
	}
	hurry := now || len(t.out) > 0 || t.commit.Len() >= batch
	if t.due.IsZero() || !hurry && time.Now().Before(t.due) {
		return nil
	}
	for ; t.routed < len(t.out); t.routed++ {
		if err := t.route(t.out[t.routed]); err != nil {
			return err
		}
	}
	safe := t.safe()
	for f, version := range safe {
		if version != t.committed[f] {
			t.commit.Version(f.name, string(version))
		}
	}
	if t.commit.Len() > 0 {
		if err := t.commitAll(ctx); err != nil {
			return err
		}
	}
	for f, version := range safe {
		t.committed[f] = version
		if version == t.versions[f] { // else the settler holds something, and the cursor moves on with it
			delete(t.moved, f)
		}
	}
	t.done()
	t.due = time.Time{}
	t.commit.Reset()
	return nil
}

func (t *publisher) done() {
	for _, e := range t.out {
		if e.Verb != event.Existing {
			t.watch.counts.told.Add(1)
		}
		if e.Merged == 0 {
			t.watch.counts.lag.Store(int64(time.Since(e.Time)))
		}
	}
	t.out, t.routed = nil, 0
}

// route puts an event into the outboxes of the sinks that it goes to.
func (t *publisher) route(e *event.Event) error {
	sinks, err := t.watch.options.Route(e)
	if err != nil {
		t.watch.counts.failed.Add(1)
		t.watch.log.Debug("a condition of a route cannot be decided, and is taken as not met", "kind", e.Kind.String(), "object", e.Key.String(), "error", err)
	}
	if len(sinks) == 0 {
		return nil
	}
	data, err := fit(e, &t.watch.options)
	if err != nil {
		return err
	}
	for _, sink := range sinks {
		t.commit.Event(sink, e.ID, data)
	}
	return nil
}

// safe returns the versions up to which everything of a follower has been published, for those
// whose cursor moves: up to the first event that the settler holds, and not beyond.
func (t *publisher) safe() map[*follower]object.Version {
	safe := make(map[*follower]object.Version, len(t.moved))
	for f := range t.moved {
		// Before, the version says nothing of the objects still to come. A follower that
		// replays has passed them all.
		if f.known || f.begun.Load() {
			safe[f] = t.versions[f]
		}
	}
	t.held.stop(safe)
	maps.DeleteFunc(safe, func(_ *follower, version object.Version) bool { return version.IsZero() })
	return safe
}

// forgetSteps makes the next start compare too, until the cursor of the kind moves again.
// Otherwise it would publish steps that are older than what was found by comparing.
func (t *publisher) forgetSteps(f *follower) {
	t.release(t.settler.Flush()) // the cursor does not go back to before what is held
	t.soon()
	t.commit.Version(f.name, "")
	delete(t.versions, f)
	delete(t.moved, f)
	delete(t.committed, f)
}

// commitAll commits, and waits while the queue of a sink is full. Everything waits then, and the log
// says so: a late event is better than a lost one.
func (t *publisher) commitAll(ctx context.Context) error {
	err := t.watch.options.Journal.Commit(&t.commit)
	var full *journal.FullError
	if !errors.As(err, &full) {
		return err
	}
	t.watch.log.Warn("a sink takes nothing and its queue is full: no sink gets events until it has room", "sink", full.Sink, "waiting", full.Waiting)
	if t.watch.options.Once {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.watch.patience)
		defer cancel()
	}
	if err = t.watch.options.Journal.CommitWait(ctx, &t.commit); err == nil {
		t.watch.log.Info("there is room again", "sink", full.Sink)
	}
	return err
}
