// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/workqueue"
)

// The history has a sample of each loop's counters in so many steps.
const (
	historyStep  = 5 * time.Second
	historySteps = 60
)

// history has what the loops did in the last minutes. It is safe for concurrent use.
type history struct {
	mu    sync.Mutex
	times []time.Time // the oldest first
	took  map[loopID][]workqueue.Histogram
}

// loopID identifies a loop: two managers may have loops of one name.
type loopID struct{ manager, loop string }

func loopOf(s *State, l *manager.LoopView) loopID { return loopID{s.URL, l.Name} }

// run takes samples until ctx ends.
func (h *history) run(ctx context.Context, sample func() (States, error)) {
	tick := time.NewTicker(historyStep)
	defer tick.Stop()
	for {
		if states, err := sample(); err == nil {
			h.add(&states)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// add takes a sample, unless the last one is too young.
func (h *history) add(states *States) {
	if len(states.Known) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	n, at := len(h.times), states.Known[0].AsOf
	if n > 0 && at.Sub(h.times[n-1]) < historyStep-historyStep/10 {
		return
	}
	took := map[loopID][]workqueue.Histogram{}
	for i := range states.Known {
		s := &states.Known[i]
		for k := range s.Loops {
			l := &s.Loops[k]
			all := h.took[loopOf(s, l)]
			for len(all) < n { // a loop that is new
				all = append(all, l.Took)
			}
			took[loopOf(s, l)] = last(append(all, l.Took), historySteps)
		}
	}
	h.times, h.took = last(append(h.times, at), historySteps), took
}

// last returns the last n elements.
func last[T any](all []T, n int) []T { return all[max(0, len(all)-n):] }

// recent is what one loop, or all of them, did in the last minutes.
type recent struct {
	rates []float64 // runs a second, the oldest first
	now   float64   // in the last step or so
	took  workqueue.Histogram
}

// of returns what a loop of a manager did up to its state at a time, which is that of the samples.
func (h *history) of(s *State, l *manager.LoopView, now time.Time) recent {
	h.mu.Lock()
	defer h.mu.Unlock()
	all, times := h.took[loopOf(s, l)], h.times
	r := recent{took: l.Took}
	if len(all) != len(times) || len(all) == 0 {
		return r
	}
	for i := 1; i < len(all); i++ {
		r.rates = append(r.rates, rate(&all[i-1], &all[i], times[i].Sub(times[i-1])))
	}
	// The state of now is younger than the last sample. A whole step at least makes the rate steady.
	from := len(all) - 1
	if from > 0 && now.Sub(times[from]) < historyStep {
		from--
	}
	r.now = rate(&all[from], &l.Took, now.Sub(times[from]))
	if since := difference(&all[0], &l.Took); since.Count() > 0 {
		r.took = since
	}
	return r
}

// rate returns the runs a second between two samples.
func rate(before, after *workqueue.Histogram, d time.Duration) float64 {
	if d <= 0 || after.Count() < before.Count() { // a manager that has begun anew counts from zero
		return 0
	}
	return float64(after.Count()-before.Count()) / d.Seconds()
}

// difference returns what was counted between two samples.
func difference(before, after *workqueue.Histogram) (d workqueue.Histogram) {
	for i := range d.Counts {
		if after.Counts[i] < before.Counts[i] {
			return *after
		}
		d.Counts[i] = after.Counts[i] - before.Counts[i]
	}
	d.Sum = after.Sum - before.Sum
	return d
}

// quantile returns about the duration that a part of all durations does not exceed. Inside of a bucket it assumes that
// durations are evenly spread, as Prometheus does. known is false if nothing was counted.
func quantile(h *workqueue.Histogram, part float64) (d time.Duration, known bool) {
	n := h.Count()
	if n == 0 {
		return 0, false
	}
	rank := part * float64(n)
	var below float64
	for i, count := range h.Counts {
		if below+float64(count) < rank || count == 0 {
			below += float64(count)
			continue
		}
		if i == workqueue.Buckets {
			return workqueue.BucketBound(i - 1), true // over every bound: at least this
		}
		low := time.Duration(0)
		if i > 0 {
			low = workqueue.BucketBound(i - 1)
		}
		inside := (rank - below) / float64(count)
		return low + time.Duration(inside*float64(workqueue.BucketBound(i)-low)), true
	}
	return 0, false
}
