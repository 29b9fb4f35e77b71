// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"sync"
	"time"
)

// Options configures a queue. The zero value is useful: the default limiter, no
// fairness, the default ageing.
type Options[K comparable] struct {
	// Name is the queue's name in errors and statistics. It should be one of few values over
	// the life of a process, such as a controller's name.
	Name string

	// Limiter decides how long a rate limited add waits. Nil is [Backoff] with its default
	// limits. The queue calls the limiter without holding a lock, from many goroutines at a time.
	Limiter Limiter[K]

	// Fair returns the group of a key, usually its namespace. Workers then get keys of one
	// priority round robin over the groups, and in order of arrival within a group, so a
	// group of 100,000 keys does not delay a group of one. Nil is one group for all.
	//
	// The queue calls Fair for each key that it does not hold yet, with its lock held: Fair
	// must be quick and must not call the queue.
	Fair func(K) string

	// AgeStep is how long a key waits to gain one level of priority. Zero is 100 ms: a key of
	// priority Low draws level with one of priority Normal after it has waited ten seconds
	// longer. With a negative value keys do not age, and a low priority can starve.
	AgeStep time.Duration
}

// Queue hands keys to workers, each key to one worker at a time. Make it with
// New. All methods may be called from any number of goroutines.
type Queue[K comparable] struct {
	name    string
	limiter Limiter[K]
	fair    func(K) string
	start   time.Time // the clock's zero; times below are nanoseconds since

	mu   sync.Mutex
	cond sync.Cond // on mu; a worker in Get waits for a ready key or shutdown

	// A worker is sleeping until a signal is on its way to it, then waking until
	// it holds the lock again. Counting both lets add skip signals that a waking
	// worker makes unnecessary; see wakeups.
	sleeping, waking int

	entries  table[K] // every key that waits or is processed
	peak     int      // most entries since the last trim
	ready    readySet[K]
	delayed  delaySet[K]
	running  entryList[K] // longest running first
	pending  int          // entries that are running and forWorker
	failures map[K]int    // rate limited adds since the last Forget

	fresh  slab[entry[K]]
	spare  *entry[K] // for reuse, linked through next
	spares int
	causes causePool

	counts counts

	shuttingDown bool
	drained      chan struct{} // made by the first shutdown, closed when nothing is left
}

// New returns an empty queue. A queue has no goroutine. ShutDown ends its workers.
func New[K comparable](opts Options[K]) *Queue[K] {
	q := &Queue[K]{
		name:     opts.Name,
		limiter:  opts.Limiter,
		fair:     opts.Fair,
		start:    time.Now(),
		entries:  newTable[K](),
		failures: make(map[K]int),
	}
	if q.limiter == nil {
		q.limiter = Backoff[K](0, 0)
	}
	q.cond.L = &q.mu
	q.ready.init(opts.AgeStep, opts.Fair != nil)
	return q
}

// now is the time in nanoseconds since the queue was made. It reads the
// monotonic clock alone, which costs half of time.Now: with three readings a key
// that is a tenth of the whole.
func (q *Queue[K]) now() int64 { return int64(time.Since(q.start)) }

// at turns nanoseconds since the queue was made into a time.
func (q *Queue[K]) at(ns int64) time.Time { return q.start.Add(time.Duration(ns)) }
