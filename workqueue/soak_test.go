// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/workqueue"
)

// Adds of every kind from 32 goroutines, 8 workers, 5,000 keys. Each add must end up
// in exactly one run of its key, which begins after the add, and no key may have two
// workers. "cd bench && go run . queue --soak 10000000" is a longer one.
func TestSoakLosesNoAddAndRepeatsNone(t *testing.T) {
	const adders, workers, keys, total = 32, 8, 5_000, 200_000

	type state struct {
		added   atomic.Int64 // adds that were begun
		run     atomic.Int64 // adds that runs stood for
		version atomic.Int64 // grows before each add
		seen    atomic.Int64 // version at the beginning of the last run
		busy    atomic.Bool
		_       [64]byte
	}
	states := make([]state, keys)
	q := workqueue.New(workqueue.Options[int]{
		Name:    "soak",
		Limiter: &workqueue.Exponential[int]{Base: time.Microsecond, Max: time.Millisecond},
		Fair:    func(key int) string { return strconv.Itoa(key % 7) },
		AgeStep: time.Microsecond,
	})
	defer q.ShutDown()

	reconcile := func(item workqueue.Item[int]) {
		s := &states[item.Key]
		if !s.busy.CompareAndSwap(false, true) {
			t.Errorf("key %d has two workers", item.Key)
		}
		s.seen.Store(s.version.Load())
		if n := len(slices.Collect(item.Causes.All())) + item.Causes.Dropped(); n > item.Adds {
			t.Errorf("key %d has %d causes from %d adds", item.Key, n, item.Adds)
		}
		s.run.Add(int64(item.Adds))
		s.busy.Store(false)
	}
	var working sync.WaitGroup
	for w := range workers {
		working.Go(func() {
			if w%2 == 0 {
				for item := range q.Items() {
					reconcile(item)
				}
				return
			}
			for {
				item, ok := q.Get()
				if !ok {
					return
				}
				reconcile(item)
				q.Done(item.Key)
			}
		})
	}

	var adding sync.WaitGroup
	for a := range adders {
		adding.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(a)))
			begin := func(key int) int {
				states[key].version.Add(1)
				states[key].added.Add(1)
				return key
			}
			for n := a; n < total; n += adders {
				key := r.IntN(keys)
				how := workqueue.Add{Priority: workqueue.Priority(r.IntN(256) - 128)}
				switch r.IntN(10) {
				case 0:
					q.AddAfter(begin(key), time.Duration(r.IntN(1000))*time.Microsecond)
				case 1:
					q.AddRateLimited(begin(key))
				case 2:
					q.Forget(key)
					q.Add(begin(key))
				case 3:
					q.AddWith(how, begin(key), begin((key+1)%keys), begin(key))
				case 4, 5, 6:
					how.Cause = podCause(strconv.Itoa(r.IntN(8)), "1")
					q.AddWith(how, begin(key))
				default:
					q.Add(begin(key))
				}
			}
		})
	}
	adding.Wait()

	deadline := time.Now().Add(time.Minute)
	for s := q.Stats(); s.Ready+s.Delayed+s.Processing > 0; s = q.Stats() {
		if time.Now().After(deadline) {
			t.Fatalf("the queue does not come to rest: %+v", s)
		}
		time.Sleep(time.Millisecond)
	}
	if err := q.ShutDownWithDrain(t.Context()); err != nil {
		t.Fatal(err)
	}
	working.Wait()

	var adds int64
	for key := range states {
		s := &states[key]
		adds += s.added.Load()
		if s.added.Load() != s.run.Load() {
			t.Errorf("key %d was added %d times, its runs stand for %d", key, s.added.Load(), s.run.Load())
		}
		if s.seen.Load() != s.version.Load() {
			t.Errorf("the last run of key %d saw version %d of %d", key, s.seen.Load(), s.version.Load())
		}
	}
	s := q.Stats()
	if s.Adds+s.Merged != uint64(adds) || s.Latency.Count() != s.Adds || s.Work.Count() != s.Adds || s.Ignored != 0 {
		t.Errorf("of %d adds, %d runs and %d merged; %d began, %d ended, %d ignored",
			adds, s.Adds, s.Merged, s.Latency.Count(), s.Work.Count(), s.Ignored)
	}
	t.Logf("%d adds, %d merged, %d runs, %d retries", adds, s.Merged, s.Adds, s.Retries)
}

func TestShutDownAmongAddsLosesNothingThatWasTaken(t *testing.T) {
	for range 10 {
		q := workqueue.New(workqueue.Options[int]{})
		var adds, run atomic.Int64
		var adding, working sync.WaitGroup
		for range 2 {
			adding.Go(func() {
				for i := 0; !q.ShuttingDown(); i++ {
					adds.Add(1)
					q.Add(i % 10)
				}
			})
			working.Go(func() {
				for item := range q.Items() {
					run.Add(int64(item.Adds))
				}
			})
		}
		for q.Stats().Adds < 100 {
			time.Sleep(10 * time.Microsecond)
		}
		if err := q.ShutDownWithDrain(t.Context()); err != nil {
			t.Fatal(err)
		}
		adding.Wait()
		working.Wait()
		if ignored := int64(q.Stats().Ignored); adds.Load() != run.Load()+ignored {
			t.Fatalf("of %d adds, %d were run and %d ignored", adds.Load(), run.Load(), ignored)
		}
	}
}
