// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/journal"
	"github.com/setpoint-io/setpoint/watch/observe"
	"github.com/setpoint-io/setpoint/wire"
)

type (
	anyObject = *unstructured.Unstructured
	tree      = map[string]any
)

// follower follows one kind in one namespace, or in all: it makes events of the steps of
// an informer. Each follower has a goroutine of its own, so that the objects of many kinds are
// decoded and compared on all processors.
type follower struct {
	watch     *Watch
	kind      event.Kind
	resource  object.Resource
	object    string // the name of the only one that is followed; empty: all
	selection client.Selection
	messages  *wire.Schema // of objects that the server sends as protobuf; nil: it sends JSON
	name      string       // in the journal
	appeared  bool         // the kind was not served when the watch began: its objects are new
	before    *legacy      // of the follower before; nil: there was none
	legacy    *legacy      // for the follower after

	informer cache.SharedInformer[anyObject]
	observer *observe.Observer
	kept     *states // of the last run and for the next one; nil: the journal keeps none
	steps    chan cache.Event[anyObject]
	leave    func() // ends the handler whose steps are not read any more
	stop     context.CancelFunc

	// Of the goroutine that runs it.
	known      bool                    // the journal knows the selection, or a legacy does
	replayed   map[object.Key]replayed // the objects that the replay has reported
	replayedTo object.Version          // up to which the replay came
	contents   int                     // of how many replayed objects the content is kept
	whole      bool                    // the replay came as far as the handler's first state, or further
	present    map[object.Key]bool     // what was there at the start
	state      object.Version          // of the state with which the handler begins, or an older one, with nothing missing
	newest     object.Version          // of the newest step that was submitted
	last       object.Version          // up to which every step was submitted: where the cursor belongs
	idleAt     object.Version          // where the informer was when the cursor was last to be moved on
	begun      atomic.Bool             // the handler has had everything that was there
}

// legacy is what a follower leaves to the next one of the same kind, which begins when this
// one has published everything.
type legacy struct {
	ended chan struct{}               // closed then
	seen  map[object.Key]journal.Seen // what it has published, where no journal says so; nil: nothing yet
}

// newFollower follows a kind until ctx ends or stop is called. It publishes what has come up to the
// stop.
func (w *Watch) newFollower(ctx context.Context, r object.Resource, p place, appeared bool, before *legacy) *follower {
	selector := w.fields(p.object)
	messages := messagesOf(r)
	f := &follower{
		watch: w, kind: kindOf(r), resource: r, object: p.object, appeared: appeared, leave: func() {},
		before: before, legacy: &legacy{ended: make(chan struct{})},
		selection: client.Selection{Namespace: p.namespace, Labels: w.options.Labels, Fields: selector, JSONOnly: messages == nil}, messages: messages,
	}
	staying, stop := context.WithCancel(ctx)
	f.stop = stop
	f.name = w.selection(r, p.namespace, p.object)
	f.informer = cache.Informer[anyObject](w.host.InformerFactory(), cache.OfKind(r.GroupVersionKind()), cache.InNamespace(p.namespace),
		cache.WithLabels(w.options.Labels), cache.WithFields(selector), cache.WithManagedFields(), cache.FromProtobuf(messages))
	w.tasks.Go(func() {
		defer close(f.legacy.ended)
		defer f.informer.Release()
		f.run(ctx, staying)
		w.publisher.submit(ctx, report{follower: f, ended: true})
	})
	return f
}

// idleEvery is how often a follower without steps moves its cursor on, so that the server
// still knows the place after the next start.
const idleEvery = 15 * time.Second

// run follows until ctx ends. When staying ends, it first reads the steps that have come until then.
func (f *follower) run(ctx, staying context.Context) {
	defer f.stop()
	defer func() { f.leave() }()
	if f.before != nil {
		select {
		case <-f.before.ended:
			f.legacy.seen = f.before.seen // until there is more
		case <-ctx.Done():
			return
		}
	}
	f.observer = f.watch.observer(staying, f)
	var err error
	if f.kept, err = openStates(f.watch.cursor.journal, f.name, f.observer.RulesDigest()); err != nil {
		f.watch.publisher.fail(err)
		return
	}
	if !f.awaitState(staying) {
		return
	}
	registration, ok := f.start(staying)
	if !ok {
		return
	}
	defer registration.Remove()
	started := registration.Synced()
	idle := time.NewTicker(idleEvery)
	defer idle.Stop()
	for {
		select {
		case e := <-f.steps:
			f.step(ctx, e)
		case <-started:
			started = nil
			f.begin(ctx)
		case <-idle.C:
			f.moveOn(ctx, registration)
		case <-staying.Done():
			f.finish(ctx, registration)
			return
		}
	}
}

// finish reads the steps that have come up to now, and leaves what was published to the next
// follower of the kind.
func (f *follower) finish(ctx context.Context, r *cache.Registration) {
	if !f.begun.Load() {
		return
	}
	last := f.informer.Snapshot()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for left, idle := math.MaxInt, 0; left > 0 && idle < 2; {
		select {
		case e := <-f.steps:
			f.step(ctx, e)
			left--
		case <-look.C:
			// For a moment, one step behind those that wait is counted neither as waiting nor as
			// being handled.
			s := r.Status()
			left = min(left, s.Waiting+1)
			if idle++; s.Waiting > 0 || s.Busy > 0 {
				idle = 0
			}
		case <-ctx.Done():
			return
		}
	}
	if !f.watch.cursor.none() {
		return
	}
	f.legacy.seen = make(map[object.Key]journal.Seen, last.Len()) // in place of a journal
	for key, item := range last.All() {
		meta := item.Meta()
		f.legacy.seen[key] = journal.Seen{UID: meta.UID, Version: string(meta.Version)}
	}
}

// start adds a handler to the informer, and replays what happened since the last run. The handler
// comes first: its steps wait while older ones are replayed, and none falls between the two.
func (f *follower) start(ctx context.Context) (*cache.Registration, bool) {
	version, known := f.watch.cursor.selection(f.name)
	if f.before != nil && f.before.seen != nil {
		known = true
	}
	f.known = known
	registration, ok := f.listen(ctx)
	if !ok || !known {
		return registration, ok
	}
	f.present = map[object.Key]bool{}
	if version.IsZero() {
		return registration, true
	}
	if state := f.informer.Snapshot().Version(); state.AtLeast(version) {
		f.whole = f.replay(ctx, version, state)
	} else {
		f.watch.log.Warn("the server was set back to an older state; comparing the states instead", "kind", f.kind.String(), "published", string(version), "server", string(state))
	}
	if f.whole {
		return registration, true
	}
	registration.Remove()
	if ctx.Err() != nil {
		return nil, false
	}
	// The state to compare with must be newer than all that was replayed. After it, single steps
	// would be older than what was published.
	f.watch.publisher.submit(ctx, report{follower: f, stepless: true})
	return f.listen(ctx)
}

// listen adds a handler, whose steps wait until they are read.
func (f *follower) listen(ctx context.Context) (*cache.Registration, bool) {
	steps := make(chan cache.Event[anyObject])
	left := make(chan struct{}) // by the reader
	f.leave()
	f.steps, f.leave = steps, sync.OnceFunc(func() { close(left) })
	f.state = f.informer.Snapshot().Complete()
	registration, err := f.informer.AddHandler(func(e cache.Event[anyObject]) {
		select {
		case steps <- e:
		case <-left:
		}
	}, cache.HandlerOptions{Name: "watch", EveryStep: true, HoldUp: true}) // while a sink has no room, the informer does not read on
	if err != nil && ctx.Err() == nil {
		f.watch.publisher.fail(fmt.Errorf("following %s: %w", f.kind, err))
	}
	return registration, err == nil
}

// awaitState waits for the informer's first list. A server may accept the list and send nothing for
// long: the log says so, since the informer has no error then. A selector that the server refuses
// ends the watch. With Once, a kind that may not be read is an error, and so is one that cannot be
// read for long.
func (f *follower) awaitState(ctx context.Context) bool {
	look := time.NewTicker(min(500*time.Millisecond, f.watch.patience))
	defer look.Stop()
	slow := time.NewTimer(listQuiet)
	defer slow.Stop()
	said := false
	for well := time.Now(); ; {
		select {
		case <-f.informer.Synced():
			if said {
				f.watch.log.Warn("the first list of a kind has ended", "kind", f.kind.String(), "namespace", f.selection.Namespace)
			}
			return true
		case <-ctx.Done():
			return false
		case <-slow.C:
			if said = f.informer.Trouble() == nil; said { // the informer logs its errors
				f.watch.log.Warn("the first list of a kind has not ended yet; its changes are found when it has", "kind", f.kind.String(), "namespace", f.selection.Namespace, "after", listQuiet)
			}
		case <-look.C:
			err := f.informer.Trouble()
			if err == nil && time.Since(f.informer.Handle().Status().Heard) < f.watch.patience {
				well = time.Now() // objects arrive
			}
			if reason := f.hopeless(err, time.Since(well)); reason != nil {
				f.watch.publisher.fail(&unseenError{what: "watching " + f.kind.String(), err: reason})
				return false
			}
		}
	}
}

// hopeless returns why it is of no use to wait longer for the first list, if it is of none. err is
// what keeps the informer from listing, nil if the server only sends nothing.
func (f *follower) hopeless(err error, silent time.Duration) error {
	o := &f.watch.options
	switch {
	case apierrors.IsBadRequest(err) && !o.All && (f.selection.Labels != "" || f.selection.Fields != ""):
		return fmt.Errorf("the server refuses the selector: %w", err)
	case !o.Once:
		return nil
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), err != nil && silent > f.watch.patience:
		return err
	case silent > f.watch.patience:
		return fmt.Errorf("the server has accepted the list and sent nothing for %s", f.watch.patience)
	}
	return nil
}

// unseenError is the error for something that must be read and cannot be.
type unseenError struct {
	what string
	err  error
}

func (e *unseenError) Error() string { return e.what + ": " + e.err.Error() }
func (e *unseenError) Unwrap() error { return e.err }

// seen returns the state of an object that was published last.
func (f *follower) seen(key object.Key) (journal.Seen, bool, error) {
	if f.before != nil && f.before.seen != nil {
		seen, had := f.before.seen[key]
		return seen, had, nil
	}
	return f.watch.cursor.get(f.name, key)
}

// objects returns all objects with the states that were published last, and a function that says
// afterwards whether they were all.
func (f *follower) objects() (iter.Seq2[object.Key, journal.Seen], func() error) {
	if f.before != nil && f.before.seen != nil {
		return maps.All(f.before.seen), func() error { return nil }
	}
	return f.watch.cursor.objects(f.name)
}

// moveOn moves the cursor to where the informer was at the call before, if everything has been
// submitted. The place where the informer is now would be too far: a step is in its state a moment
// before it waits for the handler. A cursor beyond the informer goes back: the server was set back
// to an older state, and the versions that it gives out again would be skipped.
func (f *follower) moveOn(ctx context.Context, r *cache.Registration) {
	version := f.idleAt
	f.idleAt = f.informer.Snapshot().Complete()
	if s := r.Status(); s.Waiting > 0 || s.Busy > 0 || !f.begun.Load() || f.watch.cursor.none() {
		return
	}
	if f.last.AtLeast(version) && (version.IsZero() || f.idleAt.AtLeast(f.last)) {
		return
	}
	if version.AtLeast(f.newest) || !f.idleAt.AtLeast(f.last) {
		f.newest = version
	}
	f.last = version
	f.watch.publisher.submit(ctx, report{follower: f, version: version})
}

// reach notes a step that is submitted. There may be more steps at its version (see
// [cache.Snapshot.Complete]): only a later one shows that all before it have come. A deletion that
// was noticed by absence has the version of the last state, which may be old.
func (f *follower) reach(version object.Version) {
	if f.newest.AtLeast(version) {
		return
	}
	if f.newest.AtLeast(f.last) {
		f.last = f.newest
	}
	f.newest = version
}

// complete notes that every step up to a version has been submitted.
func (f *follower) complete(version object.Version) {
	if version.AtLeast(f.newest) {
		f.newest = version
	}
	if version.AtLeast(f.last) {
		f.last = version
	}
}
