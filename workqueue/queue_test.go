// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/workqueue"
)

// newQueue returns a queue of strings that is shut down when the test ends.
func newQueue(t *testing.T, opts workqueue.Options[string]) *workqueue.Queue[string] {
	t.Helper()
	q := workqueue.New(opts)
	t.Cleanup(q.ShutDown)
	return q
}

// get takes a key that must be ready and the one wanted.
func get(t *testing.T, q *workqueue.Queue[string], want string) workqueue.Item[string] {
	t.Helper()
	if q.Len() == 0 {
		t.Fatalf("no key is ready, want %q", want)
	}
	item, ok := q.Get()
	if !ok || item.Key != want {
		t.Fatalf("Get returned %q, %v; want %q", item.Key, ok, want)
	}
	return item
}

// drain takes and finishes n ready keys, and returns them in order.
func drain(t *testing.T, q *workqueue.Queue[string], n int) []string {
	t.Helper()
	var got []string
	for range n {
		if q.Len() == 0 {
			t.Fatalf("no key is ready after %q, want %d", got, n)
		}
		item, _ := q.Get()
		q.Done(item.Key)
		got = append(got, item.Key)
	}
	return got
}

func wantKeys(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("keys came as %q, want %q", got, want)
	}
}

func TestKeysOfOnePriorityComeInOrderOfArrival(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	q.Add("a")
	q.AddWith(workqueue.Add{}, "b", "c")
	q.Add("d")
	wantKeys(t, drain(t, q, 4), "a", "b", "c", "d")
}

func TestKeyAddedSeveralTimesRunsOnce(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	for range 3 {
		q.Add("a")
	}
	if item := get(t, q, "a"); item.Adds != 3 {
		t.Errorf("the run stands for %d adds, want 3", item.Adds)
	}
	q.Done("a")
	if n := q.Len(); n != 0 {
		t.Errorf("%d keys are ready after the only one ran", n)
	}
}

func TestKeyAddedWhileProcessedRunsAgainOnceAfterDone(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	q.Add("a")
	get(t, q, "a")
	q.Add("a")
	q.Add("a")
	if n := q.Len(); n != 0 {
		t.Fatalf("%d keys are ready while the only one is processed", n)
	}
	q.Done("a")
	if item := get(t, q, "a"); item.Adds != 2 {
		t.Errorf("the second run stands for %d adds, want 2", item.Adds)
	}
	q.Done("a")
	if n := q.Len(); n != 0 {
		t.Errorf("%d keys are ready after the second run", n)
	}
}

func TestKeyAddedWhileProcessedGoesBehindThoseThatWait(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	q.AddWith(workqueue.Add{}, "a", "b")
	get(t, q, "a")
	q.Add("a")
	q.Done("a")
	wantKeys(t, drain(t, q, 2), "b", "a")
}

func TestOneWorkerPerKeyAtAnyMoment(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	keys := []string{"a", "b", "c"}
	var running [3]sync.Mutex
	var workers, adders sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for item := range q.Items() {
				i := slices.Index(keys, item.Key)
				if !running[i].TryLock() {
					t.Errorf("%q is processed by two workers", item.Key)
					return
				}
				running[i].Unlock()
			}
		})
	}
	for range 4 {
		adders.Go(func() {
			for i := range 5000 {
				q.Add(keys[i%len(keys)])
			}
		})
	}
	adders.Wait()
	q.ShutDown()
	workers.Wait()
}

func TestGetWaitsForAnAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		var got string
		go func() {
			item, _ := q.Get()
			got = item.Key
		}()
		synctest.Wait()
		if got != "" {
			t.Fatalf("Get returned %q from an empty queue", got)
		}
		q.Add("a")
		synctest.Wait()
		if got != "a" {
			t.Fatalf("Get returned %q, want a", got)
		}
	})
}

func TestEachAddWakesAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		var mu sync.Mutex
		held := map[string]bool{}
		for range 3 {
			go func() {
				item, ok := q.Get() // and never Done: a worker that is busy
				if ok {
					mu.Lock()
					held[item.Key] = true
					mu.Unlock()
				}
			}()
		}
		synctest.Wait()
		q.AddWith(workqueue.Add{}, "a", "b")
		q.Add("c")
		synctest.Wait()
		if len(held) != 3 {
			t.Fatalf("of three keys and three workers, %v came together", held)
		}
	})
}

func TestDoneForAKeyThatIsNotProcessedDoesNothing(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	q.Done("a")
	q.AddWith(workqueue.Add{}, "a", "b")
	q.Done("a")
	get(t, q, "a")
	q.Done("b")
	q.Done("a")
	q.Done("a")
	get(t, q, "b")
	q.Done("b")
}

func TestItemsEndsEachKeyWithItsBody(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	q.AddWith(workqueue.Add{}, "a", "b", "c")

	for item := range q.Items() {
		if item.Key == "b" {
			break
		}
	}
	if s := q.Stats(); s.Processing != 0 || s.Ready != 1 {
		t.Fatalf("after a break, %d keys are processed and %d ready; want 0 and 1", s.Processing, s.Ready)
	}

	func() {
		defer func() { _ = recover() }()
		for range q.Items() {
			panic("in the body")
		}
	}()
	if s := q.Stats(); s.Processing != 0 || s.Ready != 0 {
		t.Fatalf("after a panic, %d keys are processed and %d ready; want none", s.Processing, s.Ready)
	}

	q.Add("d")
	q.ShutDown()
	var got []string
	for item := range q.Items() {
		got = append(got, item.Key)
	}
	wantKeys(t, got, "d")
}

func TestItemsRunsAKeyAgainThatIsAddedInItsBody(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	q.AddWith(workqueue.Add{}, "a", "b")
	var got []string
	for item := range q.Items() {
		if got = append(got, item.Key); len(got) == 1 {
			q.Add("a")
		}
		if len(got) == 3 {
			break
		}
	}
	wantKeys(t, got, "a", "b", "a")
}

// A key that panics when it is hashed must not leave the queue locked.
func TestAKeyThatCannotBeHashedPanicsAndTheQueueGoesOn(t *testing.T) {
	q := workqueue.New(workqueue.Options[any]{})
	defer q.ShutDown()
	for name, call := range map[string]func(any){"Add": q.Add, "Done": q.Done, "AddRateLimited": q.AddRateLimited,
		"AddWith of several": func(key any) { q.AddWith(workqueue.Add{}, key, 1) }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s of a slice as key did not panic", name)
				}
			}()
			call([]int{1})
		}()
	}
	q.Add(1)
	if item, _ := q.Get(); item.Key != 1 {
		t.Errorf("got %v, want 1", item.Key)
	}
	q.Done(1)
	if s := q.Stats(); s.Processing != 0 {
		t.Errorf("%d keys are processed, want none", s.Processing)
	}
}

func TestWaitedIsTheTimeSinceTheAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		q.Add("a")
		time.Sleep(time.Second)
		q.Add("a") // does not start anew
		time.Sleep(time.Second)
		if item := get(t, q, "a"); item.Waited != 2*time.Second {
			t.Errorf("waited %v, want 2s", item.Waited)
		}
		q.Add("a")
		time.Sleep(time.Second)
		q.Done("a")
		if item := get(t, q, "a"); item.Waited != time.Second {
			t.Errorf("added while processed, waited %v, want 1s", item.Waited)
		}
	})
}
