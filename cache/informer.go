// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// informer is what SharedInformers of one selection share: a reflector, a store
// and the queues of the handlers. It is not generic, so that a program with many
// kinds holds its code once.
type informer struct {
	name     string // of the kind, for people
	kind     object.Ref
	selects  string // what of the kind it holds, in words; empty: all, whole
	chosen   chosen
	client   *client.Client // nil: it reads from something else, as in tests
	log      *slog.Logger
	store    *store
	reflect  reflector
	versions versionWaits
	content  *content

	// references and stop are the factory's, release leads there.
	references int
	stop       context.CancelFunc
	release    func()

	// again reads a state once more that the transform failed for; nil: there is no transform.
	again func(*frame, wire.Encoding, []byte) error

	// writing is held by who writes: the reflector, which has archive and relist, and who
	// tries a transform again. It comes before mu.
	writing sync.Mutex
	archive *archive
	relist  relist

	// mu makes a change of the store and its delivery one step, seen from a
	// handler that is being added. Readers do not take it.
	mu       sync.Mutex
	handlers []*Registration
	gone     map[object.Key][]chan struct{} // closed when the object goes, or begins to
	faults   map[object.Key]*fault          // objects whose newest state cannot be used
	faulted  uint64                         // how often there was one more
	running  context.Context                // nil: not started
	tasks    sync.WaitGroup
	stopped  bool

	synced   chan struct{} // closed with the first whole state
	isSynced atomic.Bool
	problem  atomic.Pointer[problem]
	said     said
	counts   counts
	ended    chan struct{} // closed when run has returned
}

func newInformer(name string, source source, c *content, log *slog.Logger) *informer {
	i := &informer{name: name, log: log, content: c, archive: newArchive(c), synced: make(chan struct{}), ended: make(chan struct{}), gone: map[object.Key][]chan struct{}{}, faults: map[object.Key]*fault{}}
	i.store = newStore(func(err error) { log.Error("an index function failed", "kind", name, "error", err) })
	i.reflect = reflector{source: source, sink: i}
	return i
}

// run reads from the server until ctx ends, and returns when nothing of it runs.
func (i *informer) run(ctx context.Context) error {
	i.mu.Lock()
	if i.running != nil {
		i.mu.Unlock()
		return fmt.Errorf("running the informer of %s: it has been run before", i.name)
	}
	i.running = ctx
	for _, r := range i.handlers {
		i.startHandler(r)
	}
	i.mu.Unlock()
	if i.again != nil {
		i.tasks.Go(func() { i.retryFaults(ctx) })
	}

	i.reflect.run(ctx)

	i.mu.Lock()
	i.stopped = true
	i.mu.Unlock()
	i.awaitHandlers()
	i.content.kept.stop()
	close(i.ended)
	return nil
}

// neverRun ends an informer that is not running and will not be. It may be called more
// than once.
func (i *informer) neverRun() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.stopped {
		i.stopped = true
		close(i.ended)
	}
}

// patience is how long something may take before the log says what is waited for.
const patience = 5 * time.Second

// awaitHandlers waits for the calls that are under way, and says whose they are if
// that takes long.
func (i *informer) awaitHandlers() {
	saying := time.AfterFunc(patience, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		for _, r := range i.handlers {
			if began := r.busy.Load(); began != 0 {
				i.log.Warn("stopping waits for a handler that does not return", "kind", i.name,
					"handler", r.name, "busy", time.Since(time.Unix(0, began)).Round(time.Second).String())
			}
		}
	})
	defer saying.Stop()
	i.tasks.Wait()
}

// startHandler is called with mu held.
func (i *informer) startHandler(r *Registration) {
	ctx, cancel := context.WithCancel(i.running)
	before := r.stop
	r.stop = func() { before(); cancel() }
	i.tasks.Go(func() {
		defer cancel()
		r.run(ctx)
	})
}

func (i *informer) addHandler(call func(*delta), o HandlerOptions) (*Registration, error) {
	limit := 0
	if o.EveryStep {
		if limit = o.Limit; limit <= 0 {
			limit = defaultLimit
		}
	}
	r := &Registration{
		informer: i, name: o.Name, queue: newDeltas(limit), call: call, synced: make(chan struct{}),
		resync: o.Resync, crash: o.Crash, caughtUp: o.CaughtUp, stop: func() {},
	}
	r.queue.holdUp = limit > 0 && o.HoldUp
	r.initial.Store(1) // the informer's own sync
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return nil, fmt.Errorf("adding a handler to the informer of %s: the informer has stopped", i.name)
	}
	i.store.current.Load().all(func(e *entry) bool {
		r.push(delta{key: e.key(), new: e, initial: true})
		return true
	})
	if i.isSynced.Load() {
		r.initialDone()
	}
	i.handlers = append(i.handlers, r)
	if i.running != nil {
		i.startHandler(r)
	}
	return r, nil
}

func (i *informer) forget(r *Registration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handlers = slices.DeleteFunc(i.handlers, func(h *Registration) bool { return h == r })
}

// resync tells one handler of everything.
func (i *informer) resync(r *Registration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.store.current.Load().all(func(e *entry) bool {
		r.push(delta{key: e.key(), old: e, new: e, resync: true})
		return true
	})
}

// tell is called with mu held, after the store has changed.
func (i *informer) tell(d delta) {
	if d.new == nil || d.new.deleting() || (d.old != nil && d.old.identity() != d.new.identity()) {
		for _, done := range i.gone[d.key] {
			close(done)
		}
		delete(i.gone, d.key)
	}
	for _, r := range i.handlers {
		r.push(d)
	}
}

// awaitRoom waits until no handler that may hold the informer up has its limit waiting.
func (i *informer) awaitRoom() {
	for {
		i.mu.Lock()
		var full *Registration
		var room <-chan struct{}
		for _, r := range i.handlers {
			if !r.queue.holdUp {
				continue
			}
			if room = r.queue.full(); room != nil {
				full = r
				break
			}
		}
		ctx := i.running
		i.mu.Unlock()
		if full == nil || ctx == nil {
			return
		}
		i.hold(ctx, full, room)
		if ctx.Err() != nil {
			return
		}
	}
}

// hold waits for one handler and keeps account of it.
func (i *informer) hold(ctx context.Context, r *Registration, room <-chan struct{}) {
	began := time.Now()
	r.holding.Store(began.UnixNano())
	saying := time.AfterFunc(patience, func() {
		i.log.Warn("a handler holds up its informer, as it asked for", "kind", i.name, "handler", r.name, "waiting", r.Status().Waiting)
	})
	select {
	case <-room:
	case <-ctx.Done():
	}
	saying.Stop()
	r.held.Add(int64(time.Since(began)))
	r.holding.Store(0)
}

// put implements sink. What the store has already is passed over: a watch that resumes
// repeats changes.
func (i *informer) put(f *frame, version object.Version) error {
	i.awaitRoom()
	i.writing.Lock()
	defer i.writing.Unlock()
	i.counts.event()
	if f.fault != nil {
		i.putFaulty(f, version)
		return nil
	}
	if known := i.store.current.Load().get(f.head.Namespace, f.head.Name); known != nil && known.same(f.head.UID, f.head.ResourceVersion) {
		i.reach(version)
		return nil
	}
	n, err := i.archive.entry(f)
	if err != nil {
		return err
	}
	i.keep(n, version)
	return nil
}

// keep stores an entry and tells of it.
func (i *informer) keep(n *entry, version object.Version) {
	i.mu.Lock()
	defer i.mu.Unlock()
	edit := i.store.begin()
	old := edit.put(n)
	if old != nil {
		i.archive.drop(old)
	}
	i.rewrite(edit)
	edit.commit(version)
	namespace, name := n.names()
	i.setFault(namespace, name, nil)
	i.tell(delta{key: n.key(), old: old, new: n})
	i.seen(version)
}

// remove implements sink. f is the object's last state. What is gone already is passed over.
func (i *informer) remove(f *frame, version object.Version) error {
	i.awaitRoom()
	i.writing.Lock()
	defer i.writing.Unlock()
	i.counts.event()
	known := i.store.current.Load().get(f.head.Namespace, f.head.Name)
	if known == nil || string(known.identity()) != string(f.head.UID) && !version.AtLeast(known.at()) {
		i.reach(version)
		i.mu.Lock()
		defer i.mu.Unlock()
		i.setFault(f.head.Namespace, f.head.Name, nil)
		return nil
	}
	last := known // the best that is known of a state that cannot be used
	if f.fault == nil {
		var err error
		if last, err = i.archive.entry(f); err != nil {
			return err
		}
		i.archive.drop(last) // it is told of, and not kept
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	edit := i.store.begin()
	old := edit.remove(f.head.Namespace, f.head.Name)
	edit.commit(version)
	i.archive.drop(old)
	i.setFault(f.head.Namespace, f.head.Name, nil)
	i.tell(delta{key: last.key(), old: old, last: last, stale: f.fault != nil})
	i.seen(version)
	return nil
}

// advance implements sink.
func (i *informer) advance(version object.Version) {
	i.writing.Lock()
	defer i.writing.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	edit := i.store.begin()
	edit.to(version)
	edit.commit(version)
	i.seen(version)
}

// reach is called where a change is of no object that is held.
func (i *informer) reach(version object.Version) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.store.begin().commit(version)
	i.seen(version)
}

// seen is called with mu held, after the store has moved to a version.
func (i *informer) seen(version object.Version) {
	i.counts.heard.Store(time.Now().UnixNano())
	i.counts.raw.Store(int64(i.archive.raw))
	i.counts.stored.Store(int64(i.archive.stored))
	i.versions.advance(version)
}

// rewrite has entries without a dictionary written anew when there is one.
func (i *informer) rewrite(edit *edit) {
	for e := range i.archive.lessons {
		l := &i.archive.lessons[e]
		if l.before == nil {
			continue
		}
		var plain []*entry
		edit.all(func(e *entry) bool {
			if e.form == l.before {
				plain = append(plain, e)
			}
			return true
		})
		for _, e := range plain {
			edit.rewrite(e, i.archive.rewrite(e, i.archive.forms[e.form.encoding]))
		}
		l.before = nil
	}
}

// NotSyncedError is the error of a read from an informer that has not had a whole state of
// its kind, and of a wait for one that was given up. That of a read has no more of its cause
// than the text: the cause may be a 404 of the server, and apierrors.IsNotFound would be true
// for an object that may exist.
type NotSyncedError struct {
	Kind   string // "pods"
	Reason string // what keeps the informer from the server, or that nothing is known to
	Cause  error  // the last error of the informer; nil if there was none
}

func (e *NotSyncedError) Error() string {
	text := "the informer of " + e.Kind + " has not synced: " + e.Reason
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

func (e *NotSyncedError) Unwrap() error { return e.Cause }

// unsynced is the error of a read before the first whole state.
func (i *informer) unsynced() error {
	why := i.whyNot()
	if why.Cause != nil {
		why.Cause = errors.New(why.Cause.Error())
	}
	return why
}

// whyNot says what keeps the informer from being synced.
func (i *informer) whyNot() *NotSyncedError {
	if p := i.problem.Load(); p != nil {
		return &NotSyncedError{Kind: i.name, Reason: p.class, Cause: p.err}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	reason := "the first list has not ended yet"
	switch {
	case i.stopped:
		reason = "the informer has stopped"
	case i.running == nil:
		reason = "the informer has not been started"
	}
	return &NotSyncedError{Kind: i.name, Reason: reason}
}

// waitGone returns a channel that is closed once the store has no object of this
// UID under the key, or has it with a deletion timestamp; and a function that
// gives up waiting. An empty UID is any.
func (i *informer) waitGone(key object.Key, uid types.UID) (<-chan struct{}, func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	done := make(chan struct{})
	e := i.store.current.Load().at(key)
	if e == nil || e.deleting() || (uid != "" && e.identity() != uid) {
		close(done)
		return done, func() {}
	}
	i.gone[key] = append(i.gone[key], done)
	return done, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		left := slices.DeleteFunc(i.gone[key], func(c chan struct{}) bool { return c == done })
		if len(left) == 0 {
			delete(i.gone, key)
			return
		}
		i.gone[key] = left
	}
}
