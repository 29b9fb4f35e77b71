// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// id is an object, among all that are followed.
type id struct {
	kind event.Kind
	key  object.Key
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
	held     map[id][]told // handed on and not let go yet: see compact
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
		held:     map[id][]told{},
		versions: map[*follower]object.Version{}, moved: map[*follower]bool{}, committed: map[*follower]object.Version{}, caughtUp: map[*follower]bool{},
	}
	t.settler = settle.New(settle.Options{Window: w.options.Window, Settle: w.options.Settle, Merge: t.merge})
	return t
}

// merge makes the event from the state before one change to the state after another of the
// same object, as if it were one.
func (t *teller) merge(first, last *event.Event) *event.Event {
	waiting := t.held[id{first.Kind, first.Key}]
	change := observe.Change{Verb: event.Updated}
	for _, w := range waiting {
		if w.event == first {
			change.Old, change.Classes = w.change.Old, union(w.event.Classes, w.classes)
		}
		if w.event == last {
			change.New, change.Classes = w.change.New, union(change.Classes, w.event.Classes)
			break
		}
	}
	return waiting[0].follower.observer.Event(change)
}

// hand hands on what a follower has to tell. It waits for room. When ctx has ended nothing
// is taken any more: the cursor must not move past something that was not.
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

// takeMore takes what is waiting already, to commit it together.
func (t *teller) takeMore() {
	for len(t.out) < batch && t.commit.Len() < batch {
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
			t.compact(object)
		case len(t.held[object]) > 0:
			// What is held back comes first: the cursor goes past both with it.
			t.held[object] = append(t.held[object], what)
			t.compact(object)
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

// compact keeps of what is held of an object what is still needed: the first, the last of
// those that the settler has, with which the cursor moves, and the last that is hidden and
// came after it.
func (t *teller) compact(object id) {
	waiting := t.held[object]
	if len(waiting) < 3 {
		return
	}
	first, rest := waiting[0], waiting[1:]
	kept := make([]told, 1, 3)
	for i, w := range rest {
		followed := slices.ContainsFunc(rest[i+1:], func(later told) bool { return !later.hidden || w.hidden })
		switch {
		case !followed:
			kept = append(kept, w)
		case !w.hidden:
			first.classes = union(first.classes, w.event.Classes)
		}
	}
	kept[0] = first
	t.held[object] = kept
}

func union(a, b []event.Class) []event.Class {
	all := slices.Clone(a)
	for _, c := range b {
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// forgetSteps has the next start compare too, until the cursor of the kind moves again. It
// would tell steps otherwise that are older than what was found by comparing.
func (t *teller) forgetSteps(f *follower) {
	t.letGo(t.settler.Flush()) // the cursor does not go back to what is held
	t.soon()
	t.commit.Version(f.name, "")
	delete(t.versions, f)
	delete(t.moved, f)
	delete(t.committed, f)
}

// wanted reports whether an event is to be told of.
func (t *teller) wanted(e *event.Event) bool {
	o := &t.watch.options
	if e.Verb == event.Existing && !o.Existing || e.Verb == event.Updated && !shown(e.Classes, o.Show) {
		return false
	}
	if o.Keep == nil {
		return true
	}
	keep, err := o.Keep(e)
	if err != nil {
		// It asks for a field that the object does not have, most often.
		t.watch.counts.failed.Add(1)
		t.watch.log.Debug("a condition cannot be decided, and the event is left out", "kind", e.Kind.String(), "object", e.Key.String(), "error", err)
	}
	return keep && err == nil
}

// belongs reports whether an event is needed to say what becomes of an object that is on
// its way somewhere: its status says when it is there.
func (t *teller) belongs(object id, e *event.Event) bool {
	return t.watch.options.Settle > 0 && len(t.held[object]) > 0 && e.Is(event.Status)
}

// shown reports whether one of the classes is told of.
func shown(classes, show []event.Class) bool {
	return slices.ContainsFunc(classes, func(c event.Class) bool {
		return c == event.Content || c == event.Metadata || slices.Contains(show, c)
	})
}

// letGo notes events to be told, and moves the cursor past what they stand for.
func (t *teller) letGo(events []*event.Event) {
	for _, e := range events {
		t.out = append(t.out, e)
		object := id{e.Kind, e.Key}
		waiting := t.held[object]
		passed := len(waiting) // up to the last one that is meant, should a state be told of twice
		for passed > 0 && !stands(e, waiting[passed-1].event) {
			passed--
		}
		// What is hidden goes with what it came after.
		for passed > 0 && passed < len(waiting) && waiting[passed].hidden {
			passed++
		}
		if passed > 0 {
			t.mark(waiting[passed-1])
		}
		if passed == len(waiting) {
			delete(t.held, object)
			continue
		}
		t.held[object] = slices.Clone(waiting[passed:])
	}
}

// stands reports whether an event leads to the same state as another of its object.
func stands(e, other *event.Event) bool {
	return e.Version == other.Version && e.UID == other.UID && (e.Verb == event.Deleted) == (other.Verb == event.Deleted)
}

// mark notes where the cursor of an object is, for the next commit.
func (t *teller) mark(what told) {
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

// soon has a commit made before long, if none is due already.
func (t *teller) soon() {
	if t.due.IsZero() {
		t.due = time.Now().Add(unhurried)
	}
}

// tell commits what there is to tell. Where that is nothing but that the cursor moves, it
// waits until more has come together: every commit waits for the disk, and what is not
// committed is only read again.
func (t *teller) tell(ctx context.Context, now bool) error {
	if t.watch.cursor.none() {
		if len(t.out) == 0 {
			return nil
		}
		if err := t.watch.options.Tell(ctx, t.out); err != nil {
			return fmt.Errorf("telling of changes: %w", err)
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
		if version == t.versions[f] { // else something is held back, and the cursor moves on with it
			delete(t.moved, f)
		}
	}
	t.done()
	t.due = time.Time{}
	t.commit.Reset()
	return nil
}

func (t *teller) done() {
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
func (t *teller) route(e *event.Event) error {
	sinks, err := t.watch.options.Route(e)
	if err != nil {
		t.watch.counts.failed.Add(1)
		t.watch.log.Debug("a condition of a route cannot be decided, and is taken as not met", "kind", e.Kind.String(), "object", e.Key.String(), "error", err)
	}
	if len(sinks) == 0 {
		return nil
	}
	data, err := t.encode(e)
	if err != nil {
		return err
	}
	for _, sink := range sinks {
		t.commit.Event(sink, e.ID, data)
	}
	return nil
}

const (
	// most is how many bytes an event may have, its ID and all.
	most = journal.MaxEvent - 1024
	// long is what a value may have in an event that is too large with it.
	long = 1024
)

// encode encodes an event with as much of it as the journal takes: an object may have
// 1.5 MiB at a server, is in an event up to four times, and six bytes of JSON may stand for
// one of it. The summary says what is left out.
func (t *teller) encode(e *event.Event) ([]byte, error) {
	if words := t.watch.options.Words; words != nil && !t.watch.options.WithObjects && len(e.Fields) == 0 && e.Verb != event.Updated && e.Verb != event.Settled {
		described := *e
		described.Summary = words(e)
		e = &described
	}
	data, err := event.Encode(e, t.watch.options.WithObjects)
	if err != nil || len(data) <= most {
		return data, err
	}
	t.watch.log.Warn("an event is too large for the journal and is told with less", "kind", e.Kind.String(), "object", e.Key.String(), "bytes", len(data), "most", most)
	less := *e
	less.Summary = "too large to be told with its objects"
	if data, err = event.Encode(&less, false); err != nil || len(data) <= most {
		return data, err
	}
	less.Summary = "too large to be told whole"
	less.Fields = slices.Clone(e.Fields)
	for i := range less.Fields {
		f := &less.Fields[i]
		f.From, f.To = shortened(f.From), shortened(f.To)
	}
	if data, err = event.Encode(&less, false); err != nil || len(data) <= most {
		return data, err
	}
	less.Fields = nil
	return event.Encode(&less, false)
}

// shortened returns a value, or what is said in its place if it is long.
func shortened(v any) any {
	if data, err := json.Marshal(v); err == nil && len(data) <= long {
		return v
	}
	return "(too large)"
}

// safe returns up to which version everything of a follower has been told of, for those
// whose cursor moves: up to the first event that is held back, and not beyond.
func (t *teller) safe() map[*follower]object.Version {
	safe := make(map[*follower]object.Version, len(t.moved))
	for f := range t.moved {
		// Before, the version says nothing of the objects still to come. A replay has them
		// all behind it.
		if f.known || f.begun.Load() {
			safe[f] = t.versions[f]
		}
	}
	for _, waiting := range t.held {
		f := waiting[0].follower
		if version, moves := safe[f]; moves && version.AtLeast(waiting[0].before) {
			safe[f] = waiting[0].before
		}
	}
	for f, version := range safe {
		if version.IsZero() {
			delete(safe, f)
		}
	}
	return safe
}

// commitAll commits, and waits for room where a sink has none left: everything waits then,
// which the log says. What is told late is told, and what is dropped is lost.
func (t *teller) commitAll(ctx context.Context) error {
	_, err := t.watch.options.Journal.Commit(&t.commit)
	var full *journal.FullError
	if !errors.As(err, &full) {
		return err
	}
	t.watch.log.Warn("a sink takes nothing and its queue is full: nothing is told to anybody until it has room", "sink", full.Sink, "waiting", full.Waiting)
	if t.watch.options.Once {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.watch.patience)
		defer cancel()
	}
	if _, err = t.watch.options.Journal.CommitWait(ctx, &t.commit); err == nil {
		t.watch.log.Info("there is room again", "sink", full.Sink)
	}
	return err
}
