// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/workqueue"
)

func delays(l workqueue.Limiter[string], key string, n int) []time.Duration {
	var got []time.Duration
	for range n {
		got = append(got, l.When(key))
	}
	return got
}

func TestExponentialDoublesFrom5MillisecondsTo1000Seconds(t *testing.T) {
	l := &workqueue.Exponential[string]{}
	got := delays(l, "a", 19)
	want := 5 * time.Millisecond
	for i, d := range got {
		if d != want {
			t.Errorf("failure %d waits %v, want %v", i+1, d, want)
		}
		want = min(2*want, 1000*time.Second)
	}
	if n := l.NumRequeues("a"); n != 19 {
		t.Errorf("%d failures, want 19", n)
	}
	if d := l.When("b"); d != 5*time.Millisecond {
		t.Errorf("the first failure of another key waits %v", d)
	}
	l.Forget("a")
	if n := l.NumRequeues("a"); n != 0 {
		t.Errorf("%d failures after Forget", n)
	}
	if d := l.When("a"); d != 5*time.Millisecond {
		t.Errorf("the first failure after Forget waits %v", d)
	}
}

func TestExponentialTakesTheLimitsOfTheUser(t *testing.T) {
	for name, test := range map[string]struct {
		base, max time.Duration
		want      []time.Duration
	}{
		"usual":            {time.Second, 5 * time.Second, []time.Duration{1e9, 2e9, 4e9, 5e9, 5e9}},
		"base beyond max":  {time.Minute, time.Second, []time.Duration{1e9, 1e9}},
		"largest duration": {math.MaxInt64 / 3, math.MaxInt64, []time.Duration{math.MaxInt64 / 3, math.MaxInt64 / 3 * 2, math.MaxInt64, math.MaxInt64}},
		"odd maximum":      {1, 3, []time.Duration{1, 2, 3, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &workqueue.Exponential[string]{Base: test.base, Max: test.max}
			if got := delays(l, "a", len(test.want)); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestTokenBucketAllows100AtOnceAnd10PerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &workqueue.TokenBucket[string]{}
		for i, d := range delays(l, "a", 105) {
			want := time.Duration(max(i-99, 0)) * 100 * time.Millisecond
			if d != want {
				t.Errorf("add %d waits %v, want %v", i+1, d, want)
			}
		}
		time.Sleep(500*time.Millisecond + 300*time.Millisecond)
		got := delays(l, "a", 4) // the debt is paid, and three tokens are there
		if want := []time.Duration{0, 0, 0, 100 * time.Millisecond}; !slices.Equal(got, want) {
			t.Errorf("after a pause, got %v, want %v", got, want)
		}
		time.Sleep(time.Hour)
		if got := delays(l, "a", 101); got[99] != 0 || got[100] != 100*time.Millisecond {
			t.Errorf("a full bucket gave %v and %v for the last two of 101", got[99], got[100])
		}
	})
}

func TestTokenBucketWithExtremeLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, l := range []*workqueue.TokenBucket[string]{
			{PerSecond: 1e-300, Burst: 1},
			{PerSecond: 1e300, Burst: math.MaxInt},
			{PerSecond: 1e-300, Burst: math.MaxInt},
		} {
			for i, d := range delays(l, "a", 20) {
				if d < 0 || l.Burst > 1 && l.PerSecond > 1 && d > 0 {
					t.Errorf("%+v: add %d waits %v", l, i+1, d)
				}
			}
		}
		slow := &workqueue.TokenBucket[string]{PerSecond: 1e-300, Burst: 1}
		if got := delays(slow, "a", 2); got[0] != 0 || got[1] < 1e6*time.Hour/10 {
			t.Errorf("a bucket that never fills gave %v", got)
		}
	})
}

func TestJoinedWaitsForTheSlowest(t *testing.T) {
	fast := &workqueue.Exponential[string]{Base: time.Millisecond}
	slow := &workqueue.Exponential[string]{Base: time.Second}
	l := workqueue.Joined[string]{fast, slow, &workqueue.TokenBucket[string]{}}
	if got, want := delays(l, "a", 2), []time.Duration{time.Second, 2 * time.Second}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	slow.Forget("a")
	if n := l.NumRequeues("a"); n != 2 {
		t.Errorf("%d failures, want the higher count, 2", n)
	}
	l.Forget("a")
	if n := l.NumRequeues("a"); n != 0 {
		t.Errorf("%d failures after Forget", n)
	}
}

func TestRateLimitedAddWaitsLongerWithEachFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		q.Add("a")
		want := 5 * time.Millisecond
		for attempt := range 10 {
			start := time.Now()
			item, _ := q.Get()
			if attempt > 0 {
				if d := time.Since(start); d != want {
					t.Errorf("try %d came after %v, want %v", attempt, d, want)
				}
				want *= 2
			}
			if item.Attempt != attempt || q.NumRequeues("a") != attempt {
				t.Errorf("attempt %d and %d requeues, want %d", item.Attempt, q.NumRequeues("a"), attempt)
			}
			q.AddRateLimited("a")
			q.Done("a")
		}
		q.Forget("a")
		if n := q.NumRequeues("a"); n != 0 {
			t.Errorf("%d requeues after Forget", n)
		}
		if item, _ := q.Get(); item.Attempt != 0 {
			t.Errorf("attempt %d after Forget", item.Attempt)
		}
	})
}

// The queue counts by itself: a limiter of all keys together knows none of them.
func TestRequeuesAreCountedWhateverTheLimiter(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{Limiter: &workqueue.TokenBucket[string]{}})
	for range 3 {
		q.AddRateLimited("a")
	}
	if n := q.NumRequeues("a"); n != 3 {
		t.Errorf("%d requeues, want 3", n)
	}
	if item := get(t, q, "a"); item.Attempt != 3 {
		t.Errorf("attempt %d, want 3", item.Attempt)
	}
}

func TestKeyThatFailsForeverDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{Limiter: &workqueue.Exponential[string]{}})
		q.Add("broken")
		for range 30 {
			item, _ := q.Get()
			q.AddRateLimited(item.Key)
			q.Done(item.Key)
		}
		start := time.Now()
		q.Add("healthy")
		get(t, q, "healthy")
		q.Done("healthy")
		if d := time.Since(start); d != 0 {
			t.Errorf("the healthy key waited %v", d)
		}
		in := q.InspectKey("broken")
		if len(in.Delayed) != 1 || in.Delayed[0].Failures != 30 || in.Delayed[0].Until.Sub(start) != 1000*time.Second {
			t.Errorf("the broken key shows as %+v", in)
		}
	})
}

func TestRateLimitedAddWaitsAtLeastAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		start := time.Now()
		q.AddWith(workqueue.Add{RateLimited: true, After: time.Second}, "a", "b")
		q.AddWith(workqueue.Add{RateLimited: true, After: time.Millisecond}, "c")
		for _, want := range []string{"c", "a", "b"} {
			if item, _ := q.Get(); item.Key != want {
				t.Fatalf("got %q, want %q", item.Key, want)
			} else if want == "c" && time.Since(start) != 5*time.Millisecond {
				t.Errorf("c came after %v, want what the limiter says, 5ms", time.Since(start))
			}
		}
		if time.Since(start) != time.Second {
			t.Errorf("a and b came after %v, want 1s", time.Since(start))
		}
	})
}
