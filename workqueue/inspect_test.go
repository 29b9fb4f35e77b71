// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/workqueue"
)

func TestInspectShowsWhereKeysAreAndWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{Fair: byNamespace})
		start := time.Now()
		because(q, "x/running", podCause("web-1", "1"))
		get(t, q, "x/running")
		time.Sleep(time.Second)
		q.AddWith(workqueue.Add{Priority: workqueue.High, Cause: podCause("web-2", "2")}, "x/running")
		q.AddWith(workqueue.Add{Priority: workqueue.Low, Cause: podCause("web-3", "3")}, "y/ready")
		q.AddWith(workqueue.Add{RateLimited: true, After: time.Hour, Cause: workqueue.Cause{Verb: workqueue.Retry}}, "z/delayed")

		want := workqueue.Inspection[string]{
			Running: []workqueue.Running[string]{{
				Key: "x/running", Since: start, Causes: []workqueue.Cause{podCause("web-1", "1")},
				Next: &workqueue.Pending{
					Priority: workqueue.High, Since: start.Add(time.Second), Adds: 1,
					Causes: []workqueue.Cause{podCause("web-2", "2")},
				},
			}},
			Ready: []workqueue.Waiting[string]{{
				Key: "y/ready", Group: "y",
				Pending: workqueue.Pending{
					Priority: workqueue.Low, Since: start.Add(time.Second), Adds: 1,
					Causes: []workqueue.Cause{podCause("web-3", "3")},
				},
			}},
			Delayed: []workqueue.Waiting[string]{{
				Key: "z/delayed", Group: "z", Failures: 1,
				Pending: workqueue.Pending{
					Until: start.Add(time.Hour + time.Second), Adds: 1,
					Causes: []workqueue.Cause{{Verb: workqueue.Retry}},
				},
			}},
			Levels: []workqueue.Level{{Priority: workqueue.Low, Keys: 1, Oldest: start.Add(time.Second)}},
		}
		if got := q.Inspect(10); !reflect.DeepEqual(got, want) {
			t.Errorf("got\n%+v, want\n%+v", got, want)
		}
		for key, want := range map[string]workqueue.Inspection[string]{
			"x/running": {Running: want.Running},
			"y/ready":   {Ready: want.Ready},
			"z/delayed": {Delayed: want.Delayed},
			"unknown":   {},
		} {
			if got := q.InspectKey(key); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got\n%+v, want\n%+v", key, got, want)
			}
		}
	})
}

func TestInspectShowsTheFirstOfEachKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, workqueue.Options[string]{Fair: byNamespace})
		for i := range 20 {
			q.Add(fmt.Sprint("run/", i))
			get(t, q, fmt.Sprint("run/", i))
			q.AddAfter(fmt.Sprint("late/", i), time.Hour-time.Duration(i*7%20)*time.Minute)
		}
		q.AddWith(workqueue.Add{}, "a/0", "a/1", "a/2", "b/0", "b/1", "c/0")
		addAt(q, workqueue.High, "b/h")

		in := q.Inspect(5)
		var running, ready, delayed []string
		for _, r := range in.Running {
			running = append(running, r.Key)
		}
		for _, w := range in.Ready {
			ready = append(ready, w.Key)
		}
		for i, w := range in.Delayed {
			delayed = append(delayed, w.Key)
			if i > 0 && w.Until.Before(in.Delayed[i-1].Until) {
				t.Errorf("%s comes before what is due earlier", w.Key)
			}
		}
		wantKeys(t, running, numbered("run/", 5)...)
		wantKeys(t, ready, "b/h", "a/0", "b/0", "c/0", "a/1")
		wantKeys(t, delayed, "late/17", "late/14", "late/11", "late/8", "late/5")
		now := time.Now()
		levels := []workqueue.Level{{Priority: workqueue.High, Keys: 1, Oldest: now}, {Priority: workqueue.Normal, Keys: 6, Oldest: now}}
		if !reflect.DeepEqual(in.Levels, levels) {
			t.Errorf("by priority there are %v keys, want %v", in.Levels, levels)
		}

		if in := q.Inspect(0); len(in.Running)+len(in.Ready)+len(in.Delayed) != 0 {
			t.Errorf("with a limit of 0: %+v", in)
		}
		if in := q.Inspect(1000); len(in.Running) != 20 || len(in.Ready) != 7 || len(in.Delayed) != 20 {
			t.Errorf("with a large limit: %d, %d, %d", len(in.Running), len(in.Ready), len(in.Delayed))
		}
	})
}
