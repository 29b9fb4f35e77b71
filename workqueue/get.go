// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"iter"
	"time"
)

// Item is a key handed to a worker, and what is known of this run of it.
type Item[K comparable] struct {
	Key      K
	Priority Priority      // the highest it was added with
	Causes   Causes        // why; belongs to the queue again after Done
	Adds     int           // how many adds came together in this run, at least one
	Attempt  int           // rate limited adds of the key since the last Forget: 0 for a first try
	Waited   time.Duration // since it could have run: since it was added, or its delay was over
}

// Items hands out keys until the queue is shut down and nothing is ready. It calls
// Done for each when the loop body ends, also by break or panic:
//
//	for item := range q.Items() {
//		reconcile(item.Key)
//	}
//
// Each worker ranges over Items of its own. It costs less than Get and Done, since
// the end of a key and the beginning of the next are one step, with one reading of
// the clock.
func (q *Queue[K]) Items() iter.Seq[Item[K]] {
	return func(yield func(Item[K]) bool) {
		item, ok := q.Get()
		defer func() {
			if ok { // break or panic
				q.Done(item.Key)
			}
		}()
		for ok && yield(item) {
			item, ok = q.doneGet(item.Key)
		}
	}
}

// Get hands out the next key. It waits for one, and returns false when the queue
// is shut down and nothing is ready. The worker must call Done when it has
// processed the key; nobody else gets the key before that.
func (q *Queue[K]) Get() (Item[K], bool) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.take(now)
}

// Done ends the processing of a key that Get returned. If the key was added in the
// meantime it is ready again. Done must be called exactly once for each key that
// Get returned; for a key that is not being processed it does nothing.
func (q *Queue[K]) Done(key K) { q.signal(q.done(key)) }

func (q *Queue[K]) done(key K) (wake int) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.finish(key, now)
	return q.wakeups()
}

func (q *Queue[K]) doneGet(key K) (Item[K], bool) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.finish(key, now)
	return q.take(now) // nobody to wake: finish makes one key ready at most, and take takes one
}

// take waits for a key to be ready and begins its run.
func (q *Queue[K]) take(now int64) (Item[K], bool) {
	for q.ready.n == 0 {
		if q.shuttingDown {
			return Item[K]{}, false
		}
		q.sleeping++
		q.cond.Wait()
		q.waking--
		now = q.now()
	}
	e := q.ready.pop()
	waited := max(now-e.when, 0) // the clock was read before the lock was had
	item := Item[K]{
		Key:      e.key,
		Priority: e.priority,
		Causes:   Causes{e.causes},
		Adds:     int(e.adds),
		Waited:   time.Duration(waited),
	}
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
	return item, true
}

// finish ends the run of a key, and begins the wait of its next.
func (q *Queue[K]) finish(key K, now int64) {
	e := q.running.front
	if q.running.n != 1 || e.key != key { // with one worker, as most controllers have, it is the one
		if e = q.entries[key]; e == nil || !e.running {
			return
		}
	}
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
		q.ready.push(e)
	case untilDue: // the timer sees to it
	}
	q.closeIfDrained()
}

// Forget takes back what the limiter and the queue hold against a key: call it
// when the key has succeeded or is given up. It does not take the key out of the
// queue, and is not a Done.
func (q *Queue[K]) Forget(key K) {
	q.limiter.Forget(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.failures, key)
}

// NumRequeues returns how often key was added rate limited since the last Forget,
// whatever the limiter counts.
func (q *Queue[K]) NumRequeues(key K) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failures[key]
}
