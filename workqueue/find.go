// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue

// Found is the state of one key of a queue. It is a copy that the caller owns.
type Found[K comparable] struct {
	Running *Running[K] // nil if no worker processes the key; Next is the run after that
	Waiting *Waiting[K] // nil if the key waits neither for a worker nor for a time
	// Ahead is how many keys Get would return before a ready key if none aged, and Ready how many keys are ready. Ahead is
	// at most the limit of the search.
	Ahead, Ready int
}

// Find returns the state of a key, and whether the queue has it. It counts up to limit keys ahead of it, and holds the
// queue's lock meanwhile, some 10 ns a key.
func (q *Queue[K]) Find(key K, limit int) (found Found[K], known bool) {
	hash := q.entries.hash(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries.get(key, hash)
	if e == nil {
		return found, false
	}
	found.Ready = q.ready.n
	if e.running {
		r := q.inspectRunning(e)
		found.Running = &r
		return found, true
	}
	w := q.inspectWaiting(e)
	found.Waiting = &w
	if e.waits == forWorker {
		q.ready.walk(limit, func(other *entry[K]) bool {
			if other == e {
				return false
			}
			found.Ahead++
			return true
		})
	}
	return found, true
}
