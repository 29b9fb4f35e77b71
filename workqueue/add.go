// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"math"
	"time"
)

// Add is how and why keys are added. The zero Add is now, with priority Normal.
//
// If a key waits already, its next run has the higher priority, the earlier time and the causes
// of both adds: however often a key is added before a worker gets it, it runs once.
type Add struct {
	Priority Priority

	// RateLimited counts a failure of the key, and delays it as long as the limiter says, or
	// by After, whichever is longer.
	RateLimited bool

	// After is the delay. Zero or less is none.
	After time.Duration

	// Cause is the reason. It is kept if it is not zero.
	Cause Cause
}

// Add enqueues a run of key. If a worker is processing the key, the run follows when that
// worker calls Done. Add does nothing after ShutDown.
func (q *Queue[K]) Add(key K) {
	var how Add
	q.signal(q.addOne(&how, key, how.After, false))
}

// AddAfter enqueues a run of key in d from now, or earlier: of several delayed adds the
// earliest counts, and an add without delay overrides them. A reconcile that must run at a
// certain time therefore calls AddAfter in each of its runs. ShutDown drops delayed keys.
func (q *Queue[K]) AddAfter(key K, d time.Duration) {
	var how Add
	q.signal(q.addOne(&how, key, d, false))
}

// AddRateLimited counts a failure of key and enqueues a run when the limiter allows it. Call
// Forget when the key succeeds or is given up.
func (q *Queue[K]) AddRateLimited(key K) {
	q.AddWith(Add{RateLimited: true}, key)
}

// Retry counts a failure of key, enqueues a run as how says when the limiter allows it, and returns the delay. It
// returns 0 after ShutDown.
func (q *Queue[K]) Retry(how Add, key K) (delay time.Duration) { return q.addRateLimited(&how, key) }

// bulk is how many keys are added under one lock: enough to make the lock cheap, and few
// enough that no worker waits for longer than some 50 µs.
const bulk = 256

// AddWith adds keys, all in the same manner. It costs less than adding them one
// by one. The keys are not an atomic group: workers may take the first before
// the last is in.
func (q *Queue[K]) AddWith(how Add, keys ...K) {
	if how.RateLimited {
		for _, key := range keys {
			q.addRateLimited(&how, key)
		}
		return
	}
	if len(keys) == 1 { // the usual case
		q.signal(q.addOne(&how, keys[0], how.After, false))
		return
	}
	for len(keys) > 0 {
		n := min(len(keys), bulk)
		q.signal(q.addMany(&how, keys[:n]))
		keys = keys[n:]
	}
}

func (q *Queue[K]) addRateLimited(how *Add, key K) (delay time.Duration) {
	if q.refuse() {
		return 0 // without taking tokens from a limiter that others may share
	}
	// The limiter may be the user's code: not under the lock.
	delay = max(q.limiter.When(key), how.After)
	q.signal(q.addOne(how, key, delay, true))
	return delay
}

// refuse counts an add and reports true if the queue is shut down.
func (q *Queue[K]) refuse() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shuttingDown {
		q.counts.ignored++
	}
	return q.shuttingDown
}

func (q *Queue[K]) addOne(how *Add, key K, delay time.Duration, failed bool) (wake int) {
	now, hash := q.now(), q.entries.hash(key)
	q.mu.Lock() // without a defer, which costs 1 %; see docs/performance.md
	if q.shuttingDown {
		q.counts.ignored++
	} else {
		if failed {
			q.failures[key]++
			q.counts.retries++
		}
		q.add(how, key, hash, now, delay)
		wake = q.wakeups()
	}
	q.mu.Unlock()
	return wake
}

func (q *Queue[K]) addMany(how *Add, keys []K) (wake int) {
	now := q.now()
	var hashes [bulk]uint64
	for i, key := range keys {
		hashes[i] = q.entries.hash(key)
	}
	q.mu.Lock()
	if q.shuttingDown {
		q.counts.ignored += uint64(len(keys))
	} else {
		for i, key := range keys {
			q.add(how, key, hashes[i], now, how.After)
		}
		wake = q.wakeups()
	}
	q.mu.Unlock()
	return wake
}

// add enters a run of key or merges it into the one that waits.
func (q *Queue[K]) add(how *Add, key K, hash uint64, now int64, delay time.Duration) {
	e := q.entries.get(key, hash)
	if e == nil {
		e = q.newEntry(key, hash)
	}
	if e.waits == notWaiting {
		e.priority, e.added, e.freed = how.Priority, now, 0
	} else {
		q.counts.merged++
		q.raise(e, how.Priority)
	}
	switch {
	case e.waits == forWorker: // as early as can be
	case delay <= 0:
		if e.waits == untilDue {
			q.delayed.remove(e)
		}
		q.makeReady(e, now)
	default:
		due := now + int64(delay)
		if due < now {
			due = math.MaxInt64
		}
		q.delay(e, due)
	}
	e.adds++
	if how.Cause != (Cause{}) {
		q.causes.merge(&e.causes, &how.Cause)
	}
}

// raise sets the priority of the run that waits, if the new one is higher.
func (q *Queue[K]) raise(e *entry[K], p Priority) {
	switch {
	case p <= e.priority:
	case e.lane == nil: // delayed, or behind its own processing
		e.priority = p
	default:
		q.ready.raise(e, p)
	}
}

// makeReady makes a run wait for a worker, since the given time.
func (q *Queue[K]) makeReady(e *entry[K], since int64) {
	e.waits = forWorker
	e.when = since
	q.counts.adds++
	if e.running {
		q.pending++
	} else {
		q.ready.push(e)
	}
}

// wakeups returns how many sleeping workers to signal once the lock is released,
// and counts them as waking. No more workers need to be on their way than keys are
// ready: a worker that finds its key taken by another, which came along by
// itself, sleeps again. That saves most of the switches between goroutines when
// several workers keep up with the adds.
func (q *Queue[K]) wakeups() int {
	n := min(q.ready.n-q.waking, q.sleeping)
	if n <= 0 {
		return 0
	}
	q.sleeping -= n
	q.waking += n
	return n
}

// signal wakes n workers. It is called without the lock, which they need first.
func (q *Queue[K]) signal(n int) {
	for ; n > 0; n-- {
		q.cond.Signal()
	}
}
