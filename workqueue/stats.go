// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"math/bits"
	"time"
)

// Stats is what a queue has counted. It is a copy and does not change. Its size is
// fixed: no figure is kept by key.
type Stats struct {
	Name string

	// Keys at this moment. A key that is processed and wanted again counts in
	// Processing and in Pending.
	Ready      int // to be handed out
	Delayed    int // waiting for a time
	Processing int // handed out, not done
	Pending    int // wanted again, waiting for Done
	Failing    int // with rate limited adds since the last Forget

	// Since the queue was made.
	Adds    uint64 // keys that became ready or pending: requested runs
	Merged  uint64 // adds that found their key waiting already
	Retries uint64 // rate limited adds
	Ignored uint64 // adds after shutdown, and delayed keys that shutdown dropped

	Latency Histogram // how long keys were ready or pending before Get
	Work    Histogram // from Get to Done

	LongestRunning time.Duration // of the keys in Processing, the longest since Get
	Unfinished     time.Duration // of the keys in Processing, the sum since Get
}

// Buckets is the number of buckets of a Histogram that have an upper bound.
const Buckets = 16

// Histogram counts durations in buckets that are the same for every queue.
type Histogram struct {
	// Counts[i] counts durations over BucketBound(i-1) and up to BucketBound(i);
	// the last one counts those over every bound.
	Counts [Buckets + 1]uint64
	Sum    time.Duration
}

// BucketBound returns the upper bound of bucket i, inclusive: 1.024 µs times four
// to the power of i, so that 16 buckets reach from a microsecond to 18 minutes,
// beyond the longest default delay. Powers of two make the bucket of a duration
// a matter of counting bits.
func BucketBound(i int) time.Duration { return 1 << (10 + 2*i) }

// Count returns the number of durations in all buckets.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

func (h *Histogram) observe(ns int64) {
	i := 0
	if ns > 1<<10 {
		i = min((bits.Len64(uint64(ns-1))-10+1)/2, Buckets)
	}
	h.Counts[i]++
	h.Sum += time.Duration(ns)
}

// counts are the figures kept under the queue's lock.
type counts struct {
	adds, merged, retries, ignored uint64
	latency, work                  Histogram
	startedSum                     int64 // of the entries that are processed
}

// Stats returns the figures of this moment. It takes the same time whatever the
// queue holds.
func (q *Queue[K]) Stats() Stats {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	s := Stats{
		Name:       q.name,
		Ready:      q.ready.n,
		Delayed:    len(q.delayed.heap),
		Processing: q.running.n,
		Pending:    q.pending,
		Failing:    len(q.failures),
		Adds:       q.counts.adds,
		Merged:     q.counts.merged,
		Retries:    q.counts.retries,
		Ignored:    q.counts.ignored,
		Latency:    q.counts.latency,
		Work:       q.counts.work,
	}
	if first := q.running.front; first != nil {
		s.LongestRunning = time.Duration(max(now-first.started, 0))
		s.Unfinished = time.Duration(max(int64(q.running.n)*now-q.counts.startedSum, 0))
	}
	return s
}
