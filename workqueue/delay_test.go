// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/workqueue"
)

func TestDelayedKeyIsReadyWhenItsTimeComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		q.AddAfter("a", time.Second)
		time.Sleep(time.Second - 1)
		synctest.Wait()
		if n := q.Len(); n != 0 {
			t.Fatalf("%d keys are ready before their time", n)
		}
		time.Sleep(1)
		synctest.Wait()
		get(t, q, "a")
	})
}

func TestDelayedKeyWakesAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		q.AddAfter("a", time.Hour)
		start := time.Now()
		if item, _ := q.Get(); item.Key != "a" || time.Since(start) != time.Hour || item.Waited != 0 {
			t.Errorf("got %+v after %v", item, time.Since(start))
		}
	})
}

func TestDelayedKeysComeInOrderOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		for _, s := range []int{5, 1, 4, 2, 3} {
			q.AddAfter(string(rune('0'+s)), time.Duration(s)*time.Second)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		wantKeys(t, drain(t, q, 5), "1", "2", "3", "4", "5")
	})
}

func TestDelayWithoutLengthIsNow(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	q.AddAfter("a", 0)
	q.AddAfter("b", -time.Second)
	wantKeys(t, drain(t, q, 2), "a", "b")
}

func TestLongestDelayDoesNotOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		time.Sleep(time.Hour)
		q.AddAfter("a", math.MaxInt64)
		time.Sleep(1000 * time.Hour)
		synctest.Wait()
		if s := q.Stats(); s.Ready != 0 || s.Delayed != 1 {
			t.Errorf("%d ready and %d delayed, want 0 and 1", s.Ready, s.Delayed)
		}
	})
}

func TestOfSeveralDelaysTheEarliestCounts(t *testing.T) {
	for name, delays := range map[string][]time.Duration{
		"earlier first": {time.Second, time.Minute},
		"later first":   {time.Minute, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, workqueue.Options[string]{})
				for _, d := range delays {
					q.AddAfter("a", d)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				drain(t, q, 1)
				time.Sleep(time.Hour)
				synctest.Wait()
				if n := q.Len(); n != 0 {
					t.Error("the later delay ran the key again")
				}
			})
		})
	}
}

func TestReadyAddOverridesADelayedOne(t *testing.T) {
	for name, add := range map[string]func(q *workqueue.Queue[string]){
		"delayed first": func(q *workqueue.Queue[string]) { q.AddAfter("a", time.Second); q.Add("a") },
		"ready first":   func(q *workqueue.Queue[string]) { q.Add("a"); q.AddAfter("a", time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, workqueue.Options[string]{})
				add(q)
				if item := get(t, q, "a"); item.Adds != 2 {
					t.Errorf("the run stands for %d adds, want 2", item.Adds)
				}
				q.Done("a")
				time.Sleep(time.Hour)
				synctest.Wait()
				if n := q.Len(); n != 0 {
					t.Error("the delayed add ran the key again")
				}
			})
		})
	}
}

func TestDelayThatEndsWhileTheKeyIsProcessedRunsItAfterDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		q.Add("a")
		get(t, q, "a")
		q.AddAfter("a", time.Second)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := q.Len(); n != 0 {
			t.Fatal("the key is ready while it is processed")
		}
		q.Done("a")
		get(t, q, "a")
	})
}

func TestDelayOutlivesTheProcessingOfItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		q.Add("a")
		get(t, q, "a")
		q.AddAfter("a", time.Second)
		q.Done("a")
		if n := q.Len(); n != 0 {
			t.Fatal("the key is ready before its time")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		get(t, q, "a")
	})
}

func TestAThousandDelaysNeedNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	q := newQueue(t, workqueue.Options[string]{})
	for i := range 1000 {
		q.AddAfter(string(rune(i+1000)), time.Hour+time.Duration(i))
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines before and %d after the adds", before, n)
	}
}
