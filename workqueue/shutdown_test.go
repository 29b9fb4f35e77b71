// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/workqueue"
)

func TestShutDownIgnoresAdds(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	if q.ShuttingDown() {
		t.Fatal("a new queue is shutting down")
	}
	q.ShutDown()
	q.Add("a")
	q.AddAfter("b", time.Nanosecond)
	q.AddRateLimited("c")
	q.AddWith(workqueue.Add{}, "d", "e")
	if !q.ShuttingDown() {
		t.Error("a queue that is shut down does not say so")
	}
	if item, ok := q.Get(); ok {
		t.Errorf("got %q, which was added after shutdown", item.Key)
	}
	if n := q.NumRequeues("c"); n != 0 {
		t.Errorf("a rate limited add after shutdown counted %d failures", n)
	}
	if s := q.Stats(); s.Ignored != 5 {
		t.Errorf("%d adds are counted as ignored, want 5", s.Ignored)
	}
}

func TestShutDownHandsOutWhatIsQueued(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	q.AddWith(workqueue.Add{}, "a", "b")
	get(t, q, "a")
	q.Add("a")
	q.ShutDown()
	get(t, q, "b")
	q.Done("b")
	q.Done("a")
	get(t, q, "a") // it was added while it was processed, before the shutdown
	q.Done("a")
	if item, ok := q.Get(); ok {
		t.Errorf("got %q from an empty queue", item.Key)
	}
}

func TestShutDownWakesEveryWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		for range 5 {
			go func() {
				if item, ok := q.Get(); ok {
					t.Errorf("got %q", item.Key)
				}
			}()
		}
		synctest.Wait()
		q.ShutDown()
		// The bubble fails if a worker is left waiting.
	})
}

func TestShutDownDropsDelayedKeysAndLeavesNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		q.AddAfter("a", time.Minute)
		q.Add("b")
		get(t, q, "b")
		q.AddAfter("b", time.Minute)
		q.ShutDown()
		q.Done("b")
		time.Sleep(time.Hour)
		synctest.Wait()
		if s := q.Stats(); s.Ready+s.Delayed+s.Pending+s.Processing != 0 || s.Ignored != 2 {
			t.Errorf("after shutdown: %+v", s)
		}
	})
}

func TestSecondShutDownIsHarmless(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	q.Add("a")
	q.ShutDown()
	q.ShutDown()
	drain(t, q, 1)
	for range 2 {
		if err := q.ShutDownWithDrain(t.Context()); err != nil {
			t.Error(err)
		}
	}
	q.ShutDown()
}

func TestShutDownWithDrainWaitsForDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		q.AddWith(workqueue.Add{}, "a", "b")
		get(t, q, "a")
		q.Add("a")
		drained := false
		go func() {
			if err := q.ShutDownWithDrain(t.Context()); err != nil {
				t.Error(err)
			}
			drained = true
		}()
		for _, step := range []func(){
			func() {},
			func() { q.Done("a") },
			func() { drain(t, q, 1) },
			func() { get(t, q, "a") },
		} {
			step()
			synctest.Wait()
			if drained {
				t.Fatal("drained while keys were left")
			}
		}
		q.Done("a")
		synctest.Wait()
		if !drained {
			t.Fatal("not drained after the last Done")
		}
	})
}

func TestShutDownWithDrainSaysWhatIsLeft(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{Name: "pods"})
	q.AddWith(workqueue.Add{}, "a", "b", "c")
	get(t, q, "a")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the deadline of the test")
	cancel(why)
	err := q.ShutDownWithDrain(ctx)
	if !errors.Is(err, why) {
		t.Fatalf("got %v, which does not wrap the cause", err)
	}
	for _, part := range []string{`"pods"`, "2 keys are not handed out", "1 are not done"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

func TestShutDownOfAnEmptyQueueIsDrained(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	if err := q.ShutDownWithDrain(t.Context()); err != nil {
		t.Error(err)
	}
}
