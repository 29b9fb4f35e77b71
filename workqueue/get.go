// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"iter"
	"time"
)

// Item is a key for a worker, with the facts of its run.
type Item[K comparable] struct {
	Key      K
	Priority Priority      // the highest one of its adds
	Causes   Causes        // the reasons; valid until Done
	Adds     int           // how many adds were merged into this run, at least one
	Attempt  int           // rate limited adds of the key since the last Forget: 0 for a first try
	Delayed  time.Duration // from the add until the end of its delay
	Waited   time.Duration // since the add, or since the end of its delay
	Held     time.Duration // the part of Waited until the Done of the run before
	Began    time.Time     // when a worker got the key
}

// Items yields keys until the queue is shut down and nothing is ready. It calls Done for each
// key when the loop body ends, also by break or panic:
//
//	for item := range q.Items() {
//		reconcile(item.Key)
//	}
//
// Each worker ranges over Items of its own. Items costs less than Get and Done: the end of one
// key and the beginning of the next are one step, with one reading of the clock.
func (q *Queue[K]) Items() iter.Seq[Item[K]] {
	return func(yield func(Item[K]) bool) {
		var item Item[K]
		e := q.first(&item)
		defer func() {
			if e != nil { // break or panic
				q.Done(item.Key)
			}
		}()
		for e != nil && yield(item) {
			e = q.next(e, &item)
		}
	}
}

// Get returns the next key. It waits for one, and returns false when the queue is shut down
// and nothing is ready. The worker must call Done when it has processed the key; no other
// worker gets the key before that.
func (q *Queue[K]) Get() (item Item[K], ok bool) {
	ok = q.first(&item) != nil
	return item, ok
}

// Done ends the processing of a key that Get returned. If the key was added in the
// meantime it is ready again. Done must be called exactly once for each key that
// Get returned; for a key that is not being processed it does nothing.
func (q *Queue[K]) Done(key K) { q.signal(q.done(key)) }

func (q *Queue[K]) done(key K) (wake int) {
	now := q.now()
	q.mu.Lock()
	if e := q.findRunning(key); e != nil {
		q.finish(e, now)
	}
	wake = q.wakeups()
	q.mu.Unlock()
	return wake
}

// first begins a run, see take.
func (q *Queue[K]) first(item *Item[K]) *entry[K] {
	now := q.now()
	q.mu.Lock()
	e := q.take(now, item)
	q.mu.Unlock()
	return e
}

// next ends the run of an item and begins another run, see take.
func (q *Queue[K]) next(e *entry[K], item *Item[K]) *entry[K] {
	now := q.now()
	q.mu.Lock()
	if e.running && e.key == item.Key { // a worker may have called Done itself, and the entry be another's
		q.finish(e, now)
	}
	e = q.take(now, item)
	q.mu.Unlock()
	return e // no worker to wake: finish makes one key ready at most, and take takes one
}

// take waits for a key to be ready, begins its run and fills in item, in place: returning an
// Item from function to function took a tenth of the time of a run. It returns nil when the
// queue is shut down and nothing is ready.
func (q *Queue[K]) take(now int64, item *Item[K]) *entry[K] {
	for q.ready.n == 0 {
		if q.shuttingDown {
			return nil
		}
		q.sleeping++
		q.cond.Wait()
		q.waking--
		now = q.now()
	}
	e := q.ready.pop()
	waited := max(now-e.when, 0) // the clock was read before the lock was had
	item.Key = e.key
	item.Priority = e.priority
	item.Causes.first = e.causes
	item.Adds = int(e.adds)
	item.Waited = time.Duration(waited)
	item.Delayed = time.Duration(max(e.when-e.added, 0))
	item.Held = time.Duration(min(max(e.freed-e.when, 0), waited))
	item.Began = q.at(now)
	item.Attempt = 0
	if len(q.failures) > 0 {
		item.Attempt = q.failures[e.key]
	}

	e.waits = notWaiting
	e.adds = 0
	e.running = true
	e.runningPriority = e.priority
	e.started = now
	e.runningCauses, e.causes = e.causes, nil
	q.running.pushBack(e)
	q.counts.startedSum += now
	q.counts.latency.observe(waited)
	return e
}

// findRunning returns the entry of a key that is processed, or nil.
func (q *Queue[K]) findRunning(key K) *entry[K] {
	e := q.running.front
	if q.running.n == 1 && e.key == key { // with one worker, as most controllers have, it is the one
		return e
	}
	if e = q.entries.get(key, q.hashUnderLock(key)); e == nil || !e.running {
		return nil
	}
	return e
}

// finish ends a run, and begins the wait of the next one of its key.
func (q *Queue[K]) finish(e *entry[K], now int64) {
	q.running.remove(e)
	q.counts.startedSum -= e.started
	q.counts.work.observe(max(now-e.started, 0))
	e.running = false
	q.causes.put(&e.runningCauses)
	switch e.waits {
	case notWaiting:
		q.freeEntry(e)
	case forWorker:
		q.pending--
		e.freed = now
		q.ready.push(e)
	case untilDue: // the timer does it
	}
	q.closeIfDrained()
}

// Forget resets the failures of a key, in the limiter and in the queue: call it when the key
// has succeeded or is given up. It does not remove the key from the queue, and it does not
// replace Done.
func (q *Queue[K]) Forget(key K) {
	q.limiter.Forget(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.failures, key)
}

// NumRequeues returns the number of rate limited adds of key since the last Forget.
func (q *Queue[K]) NumRequeues(key K) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failures[key]
}
