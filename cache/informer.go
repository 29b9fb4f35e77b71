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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// informer is what SharedInformers of one selection share: a reflector, a store
// and the queues of the handlers. It is not generic, so that a program with many
// kinds holds its code once.
type informer struct {
	name     string // of the kind, for people
	kind     object.Ref
	partial  bool // not all objects of the kind are selected
	log      *slog.Logger
	store    *store
	reflect  reflector
	versions versionWaits
	wrap     func(object.Object) *entry

	// mu makes a change of the store and its delivery one step, seen from a
	// handler that is being added. Readers do not take it.
	mu       sync.Mutex
	handlers []*Registration
	gone     map[object.Key][]chan struct{} // closed when the object goes, or begins to
	running  context.Context                // nil: not started
	tasks    sync.WaitGroup
	stopped  bool

	synced   chan struct{} // closed with the first whole state
	isSynced atomic.Bool
	problem  atomic.Pointer[problem]
	said     said
	ended    chan struct{} // closed when run has returned
}

// problem is what keeps an informer from being current.
type problem struct {
	err   error
	since time.Time
	class string
}

func newInformer(name string, source source, log *slog.Logger) *informer {
	i := &informer{name: name, log: log, synced: make(chan struct{}), ended: make(chan struct{}), wrap: newEntry, gone: map[object.Key][]chan struct{}{}}
	i.store = newStore(func(err error) { log.Error("an index function failed", "kind", name, "error", err) })
	if err := i.store.addIndex(controllerIndex, byController); err != nil {
		panic(err) // a fresh store has no index
	}
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

	i.reflect.run(ctx)

	i.mu.Lock()
	i.stopped = true
	i.mu.Unlock()
	i.tasks.Wait()
	close(i.ended)
	return nil
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
	r := &Registration{
		informer: i, name: o.Name, queue: newDeltas(o.Every), call: call, synced: make(chan struct{}),
		resync: o.Resync, stop: func() {},
	}
	r.initial.Store(1) // the informer's own sync
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return nil, fmt.Errorf("adding a handler to the informer of %s: the informer has stopped", i.name)
	}
	walk(i.store.current.Load().objects, nil, func(e *entry) bool {
		r.push(delta{key: e.meta.Key, new: e, initial: true})
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
	walk(i.store.current.Load().objects, nil, func(e *entry) bool {
		r.push(delta{key: e.meta.Key, old: e, new: e, resync: true})
		return true
	})
}

// tell is called with mu held, after the store has changed.
func (i *informer) tell(d delta) {
	if d.new == nil || d.new.meta.Deleting() || (d.old != nil && d.old.meta.UID != d.new.meta.UID) {
		for _, done := range i.gone[d.key] {
			close(done)
		}
		delete(i.gone, d.key)
	}
	for _, r := range i.handlers {
		r.push(d)
	}
}

// replace implements sink: what is not among all is gone.
func (i *informer) replace(all []object.Object, version object.Version) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.store.current.Load()
	keep := make(map[object.Key]bool, len(all))
	for _, o := range all {
		keep[object.KeyOf(o)] = true
	}
	var removed, changed []delta
	edit := i.store.begin()
	walk(before.objects, nil, func(e *entry) bool {
		if !keep[e.meta.Key] {
			edit.remove(e.meta.Key)
			removed = append(removed, delta{key: e.meta.Key, old: e, last: e, stale: true})
		}
		return true
	})
	initial := !i.isSynced.Load()
	for _, o := range all {
		// A list is what is true, also where a server was set back to an older
		// state: only what is the very same is passed over.
		n := i.wrap(o)
		if known := before.get(n.meta.Key); known != nil && known.meta.UID == n.meta.UID && known.meta.Version == n.meta.Version {
			continue
		}
		changed = append(changed, delta{key: n.meta.Key, old: edit.put(n), new: n, initial: initial})
	}
	edit.commit(version)
	// Deletions first: a handler that counts never counts two objects where one
	// took the place of the other.
	for _, d := range removed {
		i.tell(d)
	}
	for _, d := range changed {
		i.tell(d)
	}
	if initial {
		i.isSynced.Store(true)
		close(i.synced)
		for _, r := range i.handlers {
			r.initialDone()
		}
	}
	i.versions.advance(version)
}

// put implements sink. What the store has already, or newer, is passed over: a
// watch that resumes may repeat itself.
func (i *informer) put(o object.Object, version object.Version) {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := i.wrap(o)
	edit := i.store.begin()
	known, _ := edit.objects.Get(path(n.meta.Key))
	if known != nil && known.meta.UID == n.meta.UID && known.meta.Version.AtLeast(n.meta.Version) {
		edit.commit(version)
	} else {
		old := edit.put(n)
		edit.commit(version)
		i.tell(delta{key: n.meta.Key, old: old, new: n})
	}
	i.versions.advance(version)
}

// remove implements sink. o is the object's last state.
func (i *informer) remove(o object.Object, version object.Version) {
	i.mu.Lock()
	defer i.mu.Unlock()
	last := i.wrap(o)
	edit := i.store.begin()
	var old *entry
	if known, ok := edit.objects.Get(path(last.meta.Key)); ok && (known.meta.UID == last.meta.UID || version.AtLeast(known.meta.Version)) {
		old = edit.remove(last.meta.Key)
	}
	edit.commit(version)
	if old != nil {
		i.tell(delta{key: last.meta.Key, old: old, last: last})
	}
	i.versions.advance(version)
}

// advance implements sink.
func (i *informer) advance(version object.Version) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.store.begin().commit(version)
	i.versions.advance(version)
}

// sayAgain is when a reason that comes and goes is logged again. A server that
// takes watches and ends them at once would fill a log otherwise.
const sayAgain = 5 * time.Minute

// said is what was logged last of an informer's trouble. It is used by the
// reflector's goroutine alone.
type said struct {
	class string
	at    time.Time
	open  bool // the trouble that was logged has not been called off
}

// trouble implements sink: it keeps the reason and logs it once, not once a try.
func (i *informer) trouble(err error) {
	before := i.problem.Load()
	if err == nil {
		if before == nil {
			return
		}
		i.problem.Store(nil)
		if i.said.open {
			i.said.open = false
			i.log.Info("watching again", "kind", i.name, "after", time.Since(before.since).Round(time.Millisecond).String())
		}
		return
	}
	now := &problem{err: err, since: time.Now(), class: class(err)}
	if before != nil {
		now.since = before.since
	}
	i.problem.Store(now)
	if before != nil && alike(before.class, now.class) {
		return
	}
	if alike(i.said.class, now.class) && time.Since(i.said.at) < sayAgain {
		return
	}
	i.said = said{class: now.class, at: time.Now(), open: true}
	i.log.Warn("cannot watch; trying again until it works", "kind", i.name, "reason", now.class, "error", err)
}

// alike reports whether two reasons are one for a reader of the log: a server that
// goes breaks connections first and takes none after.
func alike(a, b string) bool { return a == b || (isConnection(a) && isConnection(b)) }

func isConnection(class string) bool { return class == unreachable || class == noConnection }

// The classes of problems. One line is logged for each change of class.
func class(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "forbidden"
	case apierrors.IsUnauthorized(err):
		return "unauthorized"
	case apierrors.IsNotFound(err):
		return "the server does not serve this kind"
	case apierrors.IsTooManyRequests(err):
		return "the server is overloaded"
	case client.Unreachable(err):
		return unreachable
	case errors.Is(err, errShortWatch):
		return "watches end at once"
	case isUndecodable(err):
		return "an object cannot be used"
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return fmt.Sprintf("the server answers %d", status.Status().Code)
	}
	return noConnection
}

const (
	unreachable  = "the server cannot be reached"
	noConnection = "the connection fails"
)

// NotSyncedError says why a wait for an informer was given up.
type NotSyncedError struct {
	Kind   string // "pods"
	Reason string // what keeps the informer from the server, or that nothing is known to
	Cause  error  // the last error of the informer; nil if there was none
}

func (e *NotSyncedError) Error() string {
	text := "waiting for " + e.Kind + ": " + e.Reason
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

func (e *NotSyncedError) Unwrap() error { return e.Cause }

// whyNot says what keeps the informer from being synced.
func (i *informer) whyNot() error {
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
	e := i.store.current.Load().get(key)
	if e == nil || e.meta.Deleting() || (uid != "" && e.meta.UID != uid) {
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
