// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"math"
	"slices"
	"time"
)

// Inspection shows single keys of a queue, for a debug page or a test that failed. It is a
// copy that the caller owns.
type Inspection[K comparable] struct {
	Running []Running[K] // the longest running first
	Ready   []Waiting[K] // in the order in which Get would return them if none aged
	Delayed []Waiting[K] // the soonest first
	Levels  []Level      // of all ready keys, the highest priority first
}

// Level has the ready keys of one priority.
type Level struct {
	Priority Priority  `json:"priority"`
	Keys     int       `json:"keys"`
	Oldest   time.Time `json:"oldest"` // since when the one that waits longest has been ready
}

// Running is a key that a worker processes.
type Running[K comparable] struct {
	Key      K
	Priority Priority
	Since    time.Time
	Failures int // rate limited adds since the last Forget
	Causes   []Cause
	Dropped  int      // causes beyond those that are kept
	Next     *Pending // the run that was added in the meantime; nil if there is none
}

// Waiting is a key that waits for a worker or for a time.
type Waiting[K comparable] struct {
	Key      K
	Group    string // Options.Fair of the key
	Failures int    // rate limited adds since the last Forget
	Pending
}

// Pending is a run that has not begun.
type Pending struct {
	Priority Priority
	Since    time.Time // since when it has been ready; zero if it is delayed
	Until    time.Time // when it will be ready; zero if it is
	Adds     int       // merged in it
	Causes   []Cause
	Dropped  int // causes beyond those that are kept
}

// Inspect returns up to limit running, ready and delayed keys each, and how many keys of each priority are ready. It
// holds the queue's lock while it copies them, some 100 ns a key. Stats has how many keys there are in all.
func (q *Queue[K]) Inspect(limit int) Inspection[K] {
	q.mu.Lock()
	defer q.mu.Unlock()
	var in Inspection[K]
	for e := q.running.front; e != nil && len(in.Running) < limit; e = e.next {
		in.Running = append(in.Running, q.inspectRunning(e))
	}
	q.ready.walk(limit, func(e *entry[K]) bool {
		in.Ready = append(in.Ready, q.inspectWaiting(e))
		return true
	})
	q.delayed.walk(limit, func(e *entry[K]) {
		in.Delayed = append(in.Delayed, q.inspectWaiting(e))
	})
	in.Levels = q.inspectLevels()
	return in
}

// inspectLevels counts the ready keys of each priority. It takes the same time whatever the number of keys.
func (q *Queue[K]) inspectLevels() (all []Level) {
	for i := len(q.ready.levels) - 1; i >= 0; i-- {
		if q.ready.used[i/64]&(1<<(i%64)) == 0 {
			continue
		}
		level, oldest := Level{Priority: Priority(i - priorities/2)}, int64(math.MaxInt64)
		for lane := q.ready.levels[i].front; lane != nil; lane = lane.next {
			level.Keys += lane.keys.n
			oldest = min(oldest, lane.keys.front.when) // a lane in the ring of a level that is used has keys
		}
		level.Oldest = q.at(oldest)
		all = append(all, level)
	}
	return all
}

func (q *Queue[K]) inspectRunning(e *entry[K]) Running[K] {
	r := Running[K]{
		Key:      e.key,
		Priority: e.runningPriority,
		Since:    q.at(e.started),
		Failures: q.failures[e.key],
		Causes:   slices.Collect(Causes{e.runningCauses}.All()),
		Dropped:  Causes{e.runningCauses}.Dropped(),
	}
	if e.waits != notWaiting {
		next := q.pendingRun(e)
		r.Next = &next
	}
	return r
}

func (q *Queue[K]) inspectWaiting(e *entry[K]) Waiting[K] {
	return Waiting[K]{Key: e.key, Group: e.group, Failures: q.failures[e.key], Pending: q.pendingRun(e)}
}

func (q *Queue[K]) pendingRun(e *entry[K]) Pending {
	p := Pending{
		Priority: e.priority,
		Adds:     int(e.adds),
		Causes:   slices.Collect(Causes{e.causes}.All()),
		Dropped:  Causes{e.causes}.Dropped(),
	}
	if e.waits == untilDue {
		p.Until = q.at(e.when)
	} else {
		p.Since = q.at(e.when)
	}
	return p
}

// walk visits up to limit entries: the highest priority first, and round robin
// over the groups within one. It ends when visit returns false.
func (r *readySet[K]) walk(limit int, visit func(*entry[K]) bool) {
	for i := len(r.levels) - 1; i >= 0 && limit > 0; i-- {
		if r.used[i/64]&(1<<(i%64)) == 0 {
			continue
		}
		// The next key of each group, as far as the limit can reach.
		var heads []*entry[K]
		for l := r.levels[i].front; l != nil && len(heads) < limit; l = l.next {
			heads = append(heads, l.keys.front)
		}
		for len(heads) > 0 && limit > 0 {
			e := heads[0]
			if !visit(e) {
				return
			}
			limit--
			if heads = heads[1:]; e.next != nil {
				heads = append(heads, e.next)
			}
		}
	}
}

// walk visits up to limit entries, the soonest first. The soonest that is left is
// always the root of the heap or a child of one that was visited.
func (d *delaySet[K]) walk(limit int, visit func(*entry[K])) {
	var next []int // places in the heap
	if len(d.heap) > 0 {
		next = append(next, 0)
	}
	for ; len(next) > 0 && limit > 0; limit-- {
		soonest := 0
		for i := range next {
			if d.heap.Less(next[i], next[soonest]) {
				soonest = i
			}
		}
		at := next[soonest]
		visit(d.heap[at])
		next[soonest] = next[len(next)-1]
		next = next[:len(next)-1]
		for _, child := range []int{2*at + 1, 2*at + 2} {
			if child < len(d.heap) {
				next = append(next, child)
			}
		}
	}
}
