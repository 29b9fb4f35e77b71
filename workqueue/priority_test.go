// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/workqueue"
)

func addAt(q *workqueue.Queue[string], p workqueue.Priority, keys ...string) {
	q.AddWith(workqueue.Add{Priority: p}, keys...)
}

// numbered returns n keys: prefix0, prefix1 and so on.
func numbered(prefix string, n int) []string {
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprint(prefix, i))
	}
	return keys
}

func TestHigherPriorityComesFirst(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	addAt(q, workqueue.Low, "low")
	addAt(q, -128, "lowest")
	addAt(q, workqueue.Normal, "normal")
	addAt(q, 127, "highest")
	addAt(q, workqueue.High, "high")
	addAt(q, 1, "one")
	wantKeys(t, drain(t, q, 6), "highest", "high", "one", "normal", "low", "lowest")
}

func TestMergingKeepsTheHigherPriority(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{})
	addAt(q, workqueue.Low, "a", "b", "c")
	addAt(q, workqueue.High, "c")
	addAt(q, workqueue.Low, "c")
	if item := get(t, q, "c"); item.Priority != workqueue.High {
		t.Errorf("priority %d, want %d", item.Priority, workqueue.High)
	}
	q.Done("c")
	addAt(q, workqueue.Low, "c")
	if got := drain(t, q, 3); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("a priority outlived its run: %q", got)
	}
}

func TestPriorityOfADelayedOrPendingKeyRises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		q.AddWith(workqueue.Add{Priority: workqueue.Low, After: time.Second}, "delayed")
		q.AddWith(workqueue.Add{Priority: workqueue.High, After: time.Minute}, "delayed")
		q.Add("pending")
		get(t, q, "pending")
		addAt(q, workqueue.Low, "pending")
		addAt(q, 120, "pending")
		addAt(q, workqueue.Normal, "normal")
		q.Done("pending")
		time.Sleep(time.Second)
		synctest.Wait()
		wantKeys(t, drain(t, q, 3), "pending", "delayed", "normal")
	})
}

func TestRaisedKeyGoesBehindThoseThatWaitedLongerAndBeforeThoseThatDidNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		addAt(q, workqueue.Low, "old")
		time.Sleep(time.Second)
		addAt(q, workqueue.Normal, "a", "b")
		time.Sleep(time.Second)
		addAt(q, workqueue.Low, "young")
		addAt(q, workqueue.Normal, "young", "old")
		wantKeys(t, drain(t, q, 4), "old", "a", "b", "young")
	})
}

// The rule: a key gains a level for each step it waits, and what has aged past keys
// of a higher priority gets one turn in four.
func TestAgedKeysGetAQuarterOfTheTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		addAt(q, workqueue.Low, "l0", "l1", "l2")
		time.Sleep(10 * time.Second)
		addAt(q, workqueue.Normal, numbered("a", 4)...)
		// Waited 100 steps of 100 ms more, and is 100 levels lower: level, not past.
		wantKeys(t, drain(t, q, 4), "a0", "a1", "a2", "a3")

		time.Sleep(1)
		addAt(q, workqueue.Normal, numbered("b", 8)...)
		wantKeys(t, drain(t, q, 11), "b0", "b1", "b2", "l0", "b3", "b4", "b5", "l1", "b6", "b7", "l2")
	})
}

func TestNoKeyStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{})
		addAt(q, -128, "lowest")
		addAt(q, workqueue.Low, "low")
		waited := map[string]time.Duration{}
		// Two high and one normal key arrive for each that a worker takes: the
		// backlog grows without end.
		for i := 0; len(waited) < 2; i++ {
			addAt(q, workqueue.High, fmt.Sprint("h", i), fmt.Sprint("i", i))
			addAt(q, workqueue.Normal, fmt.Sprint("n", i))
			item, _ := q.Get()
			if item.Key == "lowest" || item.Key == "low" {
				waited[item.Key] = item.Waited
			}
			q.Done(item.Key)
			time.Sleep(50 * time.Millisecond)
			if i == 10_000 {
				t.Fatalf("after %d keys, only %v came", i, waited)
			}
		}
		if waited["low"] >= waited["lowest"] {
			t.Errorf("the lower priority came first: %v", waited)
		}
		// Each level lower costs one step, 100 ms, before the turns of the aged.
		for key, least := range map[string]time.Duration{"low": 20 * time.Second, "lowest": 22800 * time.Millisecond} {
			if waited[key] < least {
				t.Errorf("%s waited %v, which is before it had aged past High at %v", key, waited[key], least)
			}
		}
	})
}

func TestWithoutAgeingTheHigherPriorityAlwaysComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{AgeStep: -1})
		addAt(q, workqueue.Low, "low")
		time.Sleep(1000 * time.Hour)
		addAt(q, workqueue.Normal, numbered("a", 10)...)
		wantKeys(t, drain(t, q, 11), append(numbered("a", 10), "low")...)
	})
}

func TestLongestAgeStepDoesNotOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{AgeStep: 1<<63 - 1})
		addAt(q, -128, "low")
		time.Sleep(1000 * time.Hour)
		addAt(q, 127, numbered("a", 10)...)
		wantKeys(t, drain(t, q, 11), append(numbered("a", 10), "low")...)
	})
}
