// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/workqueue"
)

func TestStatsCountKeysByState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{Name: "pods"})
		q.AddWith(workqueue.Add{}, "running", "again", "ready")
		get(t, q, "running")
		time.Sleep(time.Second)
		get(t, q, "again")
		q.Add("again")
		q.Add("again")
		q.AddAfter("delayed", time.Hour)
		q.AddRateLimited("failing")
		time.Sleep(time.Second)
		synctest.Wait()

		got := q.Stats()
		got.Latency, got.Work = workqueue.Histogram{}, workqueue.Histogram{}
		want := workqueue.Stats{
			Name: "pods", Ready: 2, Delayed: 1, Processing: 2, Pending: 1, Failing: 1,
			Adds: 5, Merged: 1, Retries: 1,
			LongestRunning: 2 * time.Second, Unfinished: 3 * time.Second,
		}
		if got != want {
			t.Errorf("got\n%+v, want\n%+v", got, want)
		}
		q.Done("running")
		if s := q.Stats(); s.LongestRunning != time.Second || s.Unfinished != time.Second {
			t.Errorf("after Done, longest %v and unfinished %v, want 1s", s.LongestRunning, s.Unfinished)
		}
		q.Done("again")
		if s := q.Stats(); s.LongestRunning != 0 || s.Unfinished != 0 || s.Pending != 0 || s.Ready != 3 {
			t.Errorf("with nothing processed: %+v", s)
		}
	})
}

func TestHistogramsOfLatencyAndWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		var sum time.Duration
		for i := range workqueue.Buckets {
			// On the bound, and one beyond it.
			for _, d := range []time.Duration{workqueue.BucketBound(i), workqueue.BucketBound(i) + 1} {
				q.Add("a")
				time.Sleep(d)
				get(t, q, "a")
				time.Sleep(d)
				q.Done("a")
				sum += d
			}
		}
		s := q.Stats()
		for name, h := range map[string]workqueue.Histogram{"latency": s.Latency, "work": s.Work} {
			if h.Count() != 2*workqueue.Buckets || h.Sum != sum {
				t.Errorf("%s: %d durations of %v in all, want %d of %v", name, h.Count(), h.Sum, 2*workqueue.Buckets, sum)
			}
			for i, n := range h.Counts {
				want := uint64(2)
				if i == 0 || i == workqueue.Buckets {
					want = 1
				}
				if n != want {
					t.Errorf("%s: bucket %d holds %d, want %d", name, i, n, want)
				}
			}
		}
	})
}

func TestBucketsReachBeyondTheLongestDefaultDelay(t *testing.T) {
	if b := workqueue.BucketBound(workqueue.Buckets - 1); b < workqueue.DefaultMaxDelay {
		t.Errorf("the last bound is %v", b)
	}
	if b := workqueue.BucketBound(0).Seconds(); math.Abs(b-1.024e-6) > 1e-12 {
		t.Errorf("the first bound is %v", b)
	}
}

func TestDelayedKeyDoesNotCountItsDelayAsLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		q.AddAfter("a", time.Hour)
		time.Sleep(time.Hour + time.Second)
		get(t, q, "a")
		if s := q.Stats(); s.Latency.Sum != time.Second {
			t.Errorf("latency %v, want 1s", s.Latency.Sum)
		}
	})
}
