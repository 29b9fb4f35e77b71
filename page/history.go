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
	took  map[string][]workqueue.Histogram
}

// run takes samples until ctx ends.
func (h *history) run(ctx context.Context, s Source) {
	tick := time.NewTicker(historyStep)
	defer tick.Stop()
	for {
		if o, err := s.Overview(ctx); err == nil {
			h.add(&o)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// add takes a sample, unless the last one is too young.
func (h *history) add(o *manager.Overview) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.times)
	if n > 0 && o.AsOf.Sub(h.times[n-1]) < historyStep-historyStep/10 {
		return
	}
	took := map[string][]workqueue.Histogram{}
	for i := range o.Loops {
		l := &o.Loops[i]
		all := h.took[l.Name]
		for len(all) < n { // a loop that is new
			all = append(all, l.Took)
		}
		took[l.Name] = last(append(all, l.Took), historySteps)
	}
	h.times, h.took = last(append(h.times, o.AsOf), historySteps), took
}

// last returns the last n elements.
func last[T any](all []T, n int) []T { return all[max(0, len(all)-n):] }

// recent is what one loop, or all of them, did in the last minutes.
type recent struct {
	rates []float64 // runs a second, the oldest first
	now   float64   // in the last step or so
	took  workqueue.Histogram
}

// of returns what a loop did up to its state now.
func (h *history) of(o *manager.Overview, l *manager.LoopView) recent {
	h.mu.Lock()
	defer h.mu.Unlock()
	all, times := h.took[l.Name], h.times
	r := recent{took: l.Took}
	if len(all) != len(times) || len(all) == 0 {
		return r
	}
	for i := 1; i < len(all); i++ {
		r.rates = append(r.rates, rate(&all[i-1], &all[i], times[i].Sub(times[i-1])))
	}
	// The state of now is younger than the last sample. A whole step at least makes the rate steady.
	from := len(all) - 1
	if from > 0 && o.AsOf.Sub(times[from]) < historyStep {
		from--
	}
	r.now = rate(&all[from], &l.Took, o.AsOf.Sub(times[from]))
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
