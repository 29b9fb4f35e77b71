// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"slices"
	"time"
)

// Inspection shows single keys of a queue, for a debug page or a test that failed. It is a
// copy that the caller owns.
type Inspection[K comparable] struct {
	Running []Running[K] // the longest running first
	Ready   []Waiting[K] // in the order in which Get would return them if none aged
	Delayed []Waiting[K] // the soonest first
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

// Inspect returns up to limit running, ready and delayed keys each. It holds the queue's lock
// while it copies them, some 100 ns a key. Stats has how many keys there are in all.
func (q *Queue[K]) Inspect(limit int) Inspection[K] {
	q.mu.Lock()
	defer q.mu.Unlock()
	var in Inspection[K]
	for e := q.running.front; e != nil && len(in.Running) < limit; e = e.next {
		in.Running = append(in.Running, q.inspectRunning(e))
	}
	q.ready.walk(limit, func(e *entry[K]) {
		in.Ready = append(in.Ready, q.inspectWaiting(e))
	})
	q.delayed.walk(limit, func(e *entry[K]) {
		in.Delayed = append(in.Delayed, q.inspectWaiting(e))
	})
	return in
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
// over the groups within one.
func (r *readySet[K]) walk(limit int, visit func(*entry[K])) {
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
			visit(e)
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
