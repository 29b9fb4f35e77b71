// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/setpoint-io/setpoint/workqueue"
)

func byNamespace(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace
}

func TestGroupOfManyKeysDoesNotDelayAGroupOfOne(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{Fair: byNamespace})
	q.AddWith(workqueue.Add{}, numbered("large/", 100_000)...)
	q.Add("small/0")
	wantKeys(t, drain(t, q, 3), "large/0", "small/0", "large/1")
}

func TestGroupsTakeTurnsWithinAPriority(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{Fair: byNamespace})
	q.AddWith(workqueue.Add{}, "a/0", "a/1", "a/2", "b/0", "c/0", "c/1")
	addAt(q, workqueue.High, "a/h0", "a/h1", "b/h0")
	wantKeys(t, drain(t, q, 9), "a/h0", "b/h0", "a/h1", "a/0", "b/0", "c/0", "a/1", "c/1", "a/2")
}

func TestGroupThatComesBackWaitsForItsTurn(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{Fair: byNamespace})
	q.AddWith(workqueue.Add{}, "a/0", "b/0", "b/1", "c/0", "c/1")
	drain(t, q, 1)
	q.Add("a/1")
	wantKeys(t, drain(t, q, 5), "b/0", "c/0", "a/1", "b/1", "c/1")
}

func TestRaisingTheOnlyKeyOfAGroupKeepsTheOthersInTurn(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{Fair: byNamespace})
	q.AddWith(workqueue.Add{}, "a/0", "b/0", "c/0", "a/1", "c/1")
	addAt(q, workqueue.High, "b/0")
	wantKeys(t, drain(t, q, 5), "b/0", "a/0", "c/0", "a/1", "c/1")
}

func TestPanicInFairLeavesTheQueueUsable(t *testing.T) {
	q := newQueue(t, workqueue.Options[string]{Fair: func(key string) string {
		if key == "bad" {
			panic("no group for bad")
		}
		return key
	}})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach the caller of Add")
			}
		}()
		q.Add("bad")
	}()
	q.Add("good")
	wantKeys(t, drain(t, q, 1), "good")
	if s := q.Stats(); s.Ready+s.Delayed+s.Processing != 0 {
		t.Errorf("the key without a group is in the queue: %+v", s)
	}
}

func TestPanicInFairWakesWorkersForTheKeysBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{Fair: func(key string) string {
			if key == "bad" {
				panic("no group for bad")
			}
			return key
		}})
		got := make(chan string, 1)
		go func() {
			item, _ := q.Get()
			got <- item.Key
		}()
		synctest.Wait() // until the worker sleeps
		func() {
			defer func() { _ = recover() }()
			q.AddWith(workqueue.Add{}, "good", "bad")
		}()
		synctest.Wait()
		select {
		case key := <-got:
			q.Done(key)
		default:
			t.Error("a key is in the queue, and the worker sleeps")
		}
	})
}
