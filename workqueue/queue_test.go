// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/workqueue"
)

func TestKeyAddedWhileProcessedRunsAgainOnceAfterDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{})
		q.Add("a")
		item, _ := q.Get()
		q.Add("a")
		q.Add("a")
		if n := q.Len(); n != 0 {
			t.Fatalf("%d keys are ready while the only one is processed", n)
		}
		q.Done(item.Key)
		item, ok := q.Get()
		if !ok || item.Key != "a" || item.Adds != 2 {
			t.Fatalf("got %+v, %v", item, ok)
		}
		q.Done("a")
		q.AddAfter("b", time.Second)
		item, _ = q.Get()
		if item.Key != "b" {
			t.Fatal(item)
		}
		q.Done("b")
		q.ShutDown()
		if _, ok := q.Get(); ok {
			t.Fatal("a shut down and empty queue handed out a key")
		}
	})
}
