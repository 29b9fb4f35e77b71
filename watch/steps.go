// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/journal"
	"github.com/setpoint-io/setpoint/watch/observe"
	"github.com/setpoint-io/setpoint/watch/trouble"
)

// step makes an event of a step of the informer.
func (f *follower) step(ctx context.Context, e cache.Event[anyObject]) {
	key := e.Key()
	if f.watch.excluded(key) {
		return
	}
	item := e.Item()
	version := item.Meta().Version
	if e.Initial {
		f.initial(ctx, key, e.New)
		return
	}
	f.begin(ctx) // a step follows everything that was there
	done, ok := f.replayed[key]
	if ok && done.version.AtLeast(version) && (!e.Stale || !done.there) {
		return // the replay went further than the state that the informer began with
	}
	if !f.replayedTo.AtLeast(version) {
		f.replayed = nil // steps come in order, and this one is behind all of the replay's
	}
	change := observe.Change{Stale: e.Stale}
	switch e.Kind {
	case cache.Added:
		change.Verb = event.Created
	case cache.Updated:
		change.Verb = event.Updated
	case cache.Replaced:
		change.Verb = event.Replaced
	case cache.Deleted:
		change.Verb = event.Deleted
	case cache.Resync: // no handler asks for it
		return
	}
	var err error
	change.Old, change.New, err = cache.TreesOf(e.Old, e.New)
	if e.Stale && done.there && done.uid != item.Meta().UID {
		change.Old = f.remains(key, done.seen()) // the informer has missed the one that went last
	}
	f.reach(version)
	f.report(ctx, key, change, "", f.last, err)
}

// initial handles an object that was there at the start.
func (f *follower) initial(ctx context.Context, key object.Key, item cache.Item[anyObject]) {
	meta := item.Meta()
	f.try(item)
	if f.present != nil {
		f.present[key] = true
	}
	done, ok := f.replayed[key]
	if ok && done.version.AtLeast(meta.Version) {
		return
	}
	seen, had, err := f.seen(key)
	if ok { // the journal may have an older state, or a newer one by now
		seen, had = done.seen(), done.there
		if done.content != nil {
			seen.Digest = f.watch.cursor.digest(done.content)
		}
	}
	if err != nil {
		f.watch.publisher.fail(err)
		return
	}
	change := observe.Change{Missed: true}
	switch {
	case f.watch.cursor.none() && !f.known && !f.watch.options.Existing && !f.appeared:
		return
	case had && seen.UID == meta.UID && seen.Version == string(meta.Version):
		if seen.Trouble != "" {
			f.watch.publisher.submit(ctx, report{follower: f, restored: key, seen: seen})
		}
		return
	case had && seen.UID != meta.UID:
		change.Verb = event.Replaced
	case had:
		change.Verb = event.Updated
	case f.known, f.appeared:
		change.Verb, change.Missed = event.Created, !f.appeared
	default:
		change.Verb, change.Missed = event.Existing, false
		if !f.watch.options.Existing {
			f.note(ctx, item)
			return
		}
	}
	if change.New, err = treeOf(item); err == nil && change.Verb == event.Updated {
		now := f.watch.cursor.digest(change.New)
		change.Classes = observe.Classes(seen.Digest, now)
	}
	if had && (change.Verb == event.Updated || change.Verb == event.Replaced) {
		change.Old = f.lastState(key, seen)
		change.Kept = change.Old != nil
	}
	f.report(ctx, key, change, seen.Trouble, "", err)
}

// try tries the condition on an object that was there at the start, while it is not known whether it
// fails for all of them.
func (f *follower) try(item cache.Item[anyObject]) {
	if !f.watch.judge.open() {
		return
	}
	if content, err := treeOf(item); err == nil {
		f.watch.judge.object(f.observer.Event(observe.Change{Verb: event.Updated, Old: content, New: content}))
	}
}

// note has the cursor of an object begin where the object is. Nothing is published, and so
// no event is made: of a first list, this is all there is to do.
func (f *follower) note(ctx context.Context, item cache.Item[anyObject]) {
	content, err := treeOf(item)
	if err != nil {
		f.report(ctx, item.Key(), observe.Change{}, "", "", err)
		return
	}
	meta := item.Meta()
	f.watch.publisher.submit(ctx, report{
		follower: f,
		signs:    signs{now: trouble.Of(f.kind, f.observer.Shown(content))},
		event:    &event.Event{Verb: event.Existing, Kind: f.kind, Key: meta.Key, UID: meta.UID, Version: string(meta.Version)},
		seen:     journal.Seen{UID: meta.UID, Version: string(meta.Version), Digest: f.watch.cursor.digest(content), State: f.encoded(content)},
	})
}

// begin is called when the handler has had everything that was there. Objects that the journal knows
// beyond that are gone.
func (f *follower) begin(ctx context.Context) {
	if f.begun.Load() {
		return
	}
	f.begun.Store(true)
	if f.object != "" && !f.known && f.informer.Snapshot().Len() == 0 {
		f.sayAbsent()
	}
	if f.known {
		known, failed := f.objects()
		for key, seen := range known {
			if _, ok := f.replayed[key]; f.present[key] || ok || f.watch.excluded(key) {
				continue
			}
			f.gone(ctx, key, seen)
		}
		if err := failed(); err != nil {
			f.watch.publisher.fail(err)
			return
		}
	}
	for key, done := range f.replayed {
		if !f.whole && done.there && !f.present[key] {
			f.gone(ctx, key, done.seen())
		}
		done.content = nil // it was for the steps of the replay
		f.replayed[key] = done
	}
	if !f.whole {
		f.replayed = nil // all that comes is newer
	}
	f.present, f.before, f.legacy.seen = nil, nil, nil
	if !f.last.AtLeast(f.state) {
		f.last = f.state
	}
	f.watch.publisher.submit(ctx, report{follower: f, version: f.last, caughtUp: true})
}

// gone reports an object that was deleted while the watch did not run.
func (f *follower) gone(ctx context.Context, key object.Key, seen journal.Seen) {
	change := observe.Change{Verb: event.Deleted, Missed: true, Stale: true, Old: f.remains(key, seen)}
	if f.kept != nil {
		whole, _, err := f.seen(key) // the list of objects has no states
		if err != nil {
			f.watch.publisher.fail(err)
			return
		}
		if state := f.lastState(key, whole); state != nil {
			change.Old, change.Kept = state, true
		}
	}
	f.report(ctx, key, change, "", "", nil)
}

// lastState returns the state of an object that was published last, nil if it is not known.
func (f *follower) lastState(key object.Key, seen journal.Seen) tree {
	if f.kept == nil {
		return nil
	}
	state, err := f.kept.decode(seen.State)
	if err != nil {
		f.watch.log.Warn("the last state of an object cannot be read from the cursor; what changed is not known", "kind", f.kind.String(), "object", key.String(), "error", err)
	}
	return state
}

// encoded returns a state as the journal keeps it, "" if it keeps none.
func (f *follower) encoded(content tree) string {
	if f.kept == nil {
		return ""
	}
	state, err := f.kept.encode(f.observer.Keep(content))
	if err != nil {
		f.watch.publisher.fail(err)
	}
	return state
}

// remains is what is known of an object that was deleted while the watch did not run.
func (f *follower) remains(key object.Key, seen journal.Seen) tree {
	metadata := tree{"name": key.Name, "uid": string(seen.UID), "resourceVersion": seen.Version}
	if key.Namespace != "" {
		metadata["namespace"] = key.Namespace
	}
	return tree{"apiVersion": f.kind.APIVersion(), "kind": f.kind.Kind, "metadata": metadata}
}

// report makes an event of a change and submits it, with the places of the cursors after it: that of
// the object, and that of the kind, if version says so. Troubles are those that the cursor has of
// the object, if this is the first change since the last run.
func (f *follower) report(ctx context.Context, key object.Key, change observe.Change, troubles string, version object.Version, err error) {
	if err != nil {
		// The bytes are the server's, and every reader fails alike. The cursor stays where it
		// was, so the object is published with its next change.
		f.watch.counts.failed.Add(1)
		f.watch.log.Error("an object cannot be decoded, and its change is not published", "kind", f.kind.String(), "object", key.String(), "error", err)
		return
	}
	e := f.observer.Event(change)
	t := report{follower: f, event: e, change: change, signs: signsOf(e, troubles), version: version}
	if !f.watch.cursor.none() {
		if change.New != nil {
			t.seen = journal.Seen{UID: e.UID, Version: e.Version, Digest: f.watch.cursor.digest(change.New), State: f.encoded(change.New)}
		} else {
			t.forget = true
		}
	}
	f.watch.publisher.submit(ctx, t)
}

// treeOf returns the content of an item, nil if there is none.
func treeOf(item cache.Item[anyObject]) (tree, error) {
	_, content, err := cache.TreesOf(cache.Item[anyObject]{}, item)
	return content, err
}
