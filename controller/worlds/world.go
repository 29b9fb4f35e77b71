// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package worlds

import (
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/workqueue"
)

// Knowledge is how much is known of a thing in the actual world.
type Knowledge int

const (
	// Unknown is before the first observation.
	Unknown Knowledge = iota
	// Absent is that there is no such thing.
	Absent
	// Present is that the thing exists, as the value says.
	Present
	// Uncertain is that an operation ended without saying whether it happened.
	Uncertain
)

// String returns the name of the constant, in lower case.
func (k Knowledge) String() string {
	return [...]string{"unknown", "absent", "present", "uncertain"}[k]
}

// The waits after failed operations.
// Source: k8s.io/kubernetes/pkg/util/goroutinemap/exponentialbackoff.
const (
	defaultFirst = 500 * time.Millisecond
	defaultMost  = 2*time.Minute + 2*time.Second
)

// Options changes how a [World] works. The zero Options are the defaults.
type Options struct {
	// First is how long an operation waits after its first failure. It doubles with each failure
	// in a row, up to Most. 0 is 500 ms, and 2 minutes and 2 seconds.
	First, Most time.Duration
}

// World is what a controller knows of the actual world: things of type A by their keys, and the
// operations that change them. It is safe for concurrent use; the type A is copied.
type World[K comparable, A any] struct {
	backoff workqueue.Exponential[K]

	mu     sync.Mutex
	things map[K]*thing[A]
}

// thing is what is known of one key.
type thing[A any] struct {
	value     A
	knowledge Knowledge
	seen      time.Time // when it was last observed or changed by an operation that is done

	running *Operation
	failed  *Operation // the last one, until one is done
}

// New returns a World in which nothing is known.
func New[K comparable, A any](o Options) *World[K, A] {
	w := &World[K, A]{things: map[K]*thing[A]{}}
	w.backoff.Base, w.backoff.Max = o.First, o.Most
	if o.First <= 0 {
		w.backoff.Base = defaultFirst
	}
	if o.Most <= 0 {
		w.backoff.Max = defaultMost
	}
	return w
}

// thing returns what is known of a key. The caller holds the lock.
func (w *World[K, A]) thing(key K) *thing[A] {
	t := w.things[key]
	if t == nil {
		t = &thing[A]{}
		w.things[key] = t
	}
	return t
}

// Actual returns what is known of a key. The value of a key that is absent or unknown is the last
// one, or the zero value.
func (w *World[K, A]) Actual(key K) (A, Knowledge) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.things[key]; t != nil {
		return t.value, t.knowledge
	}
	var zero A
	return zero, Unknown
}

// Seen returns when a key was last observed, or changed by an operation that is done. It is zero
// before that.
func (w *World[K, A]) Seen(key K) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.things[key]; t != nil {
		return t.seen
	}
	return time.Time{}
}

// Saw records an observation: the thing is present, with that value. It ends no operation.
func (w *World[K, A]) Saw(key K, value A) { w.know(key, Present, &value) }

// Confirm records an observation: the thing is present, and its value stays as it is.
func (w *World[K, A]) Confirm(key K) { w.know(key, Present, nil) }

// SawNothing records an observation: there is no such thing. It ends no operation, and leaves the
// value.
func (w *World[K, A]) SawNothing(key K) { w.know(key, Absent, nil) }

func (w *World[K, A]) know(key K, k Knowledge, value *A) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.thing(key).know(k, value)
}

func (t *thing[A]) know(k Knowledge, value *A) {
	t.knowledge, t.seen = k, time.Now()
	if value != nil {
		t.value = *value
	}
}

// Update changes the value of a key and leaves what is known of it. change is called with a lock
// held: it must be quick and must not call the World.
func (w *World[K, A]) Update(key K, change func(*A)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.thing(key).value)
}

// Forget removes a key, with its operation and its failures. The key is then Unknown.
func (w *World[K, A]) Forget(key K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.things, key)
	w.backoff.Forget(key)
}

// Keys returns the keys of which something is known, in no order.
func (w *World[K, A]) Keys() []K {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := make([]K, 0, len(w.things))
	for key := range w.things {
		keys = append(keys, key)
	}
	return keys
}
