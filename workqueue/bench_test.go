// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

func benchKeys(n int) []object.Key {
	keys := make([]object.Key, n)
	for i := range keys {
		keys[i] = object.Key{Namespace: fmt.Sprint("team-", i%50), Name: fmt.Sprint("web-", i)}
	}
	return keys
}

// benchAdd is an add with all that an add can carry.
var benchAdd = workqueue.Add{Cause: workqueue.Cause{
	Source:  "pods",
	Verb:    workqueue.Updated,
	Ref:     object.Ref{Kind: "Pod", Key: object.Key{Namespace: "team-0", Name: "web-0-x7k2p"}, UID: "1"},
	Version: "4711",
}}

var benchPriorities = []workqueue.Priority{workqueue.Low, workqueue.Normal, workqueue.High}

func byKeyNamespace(k object.Key) string { return k.Namespace }

// One goroutine adds a key, gets one and is done with it.
func BenchmarkAddGetDone(b *testing.B) {
	keys := benchKeys(1000)
	for _, test := range []struct {
		name    string
		opts    workqueue.Options[object.Key]
		backlog int
	}{
		{name: "backlog=0"},
		{name: "backlog=900", backlog: 900},
		{name: "fair/backlog=0", opts: workqueue.Options[object.Key]{Fair: byKeyNamespace}},
		{name: "fair/backlog=900", opts: workqueue.Options[object.Key]{Fair: byKeyNamespace}, backlog: 900},
	} {
		b.Run(test.name, func(b *testing.B) {
			q := workqueue.New(test.opts)
			defer q.ShutDown()
			how := benchAdd
			for i := range test.backlog {
				how.Priority = benchPriorities[i%3]
				q.AddWith(how, keys[i])
			}
			b.ReportAllocs()
			for i := test.backlog; b.Loop(); i++ {
				how.Priority = benchPriorities[i%3]
				q.AddWith(how, keys[i%len(keys)])
				item, _ := q.Get()
				q.Done(item.Key)
			}
		})
	}
	b.Run("Items", func(b *testing.B) {
		q := workqueue.New(workqueue.Options[object.Key]{})
		defer q.ShutDown()
		how := benchAdd
		q.AddWith(how, keys[0])
		b.ReportAllocs()
		i := 0
		for range q.Items() {
			if !b.Loop() {
				break
			}
			i++
			how.Priority = benchPriorities[i%3]
			q.AddWith(how, keys[i%len(keys)])
		}
	})
}

// Adds of a key that already waits, as in a burst of events.
func BenchmarkMerge(b *testing.B) {
	q := workqueue.New(workqueue.Options[object.Key]{})
	defer q.ShutDown()
	keys := benchKeys(1000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		q.AddWith(benchAdd, keys[i%len(keys)])
	}
}

func BenchmarkAddRateLimited(b *testing.B) {
	q := workqueue.New(workqueue.Options[object.Key]{})
	defer q.ShutDown()
	keys := benchKeys(1000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		q.AddRateLimited(keys[i%len(keys)])
	}
}

// Distinct keys delayed and made ready again: what the heap costs.
func BenchmarkAddAfterThenAdd(b *testing.B) {
	q := workqueue.New(workqueue.Options[object.Key]{})
	defer q.ShutDown()
	keys := benchKeys(1000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		q.AddAfter(keys[i%len(keys)], time.Hour-time.Duration(i))
		if i >= 500 {
			q.Add(keys[(i-500)%len(keys)])
			item, _ := q.Get()
			q.Done(item.Key)
		}
	}
}

// One goroutine adds distinct keys, eight process them; the backlog stays under 1,100,
// so that each add is one run.
func BenchmarkEightConsumers(b *testing.B) {
	keys := benchKeys(100_000)
	q := workqueue.New(workqueue.Options[object.Key]{})
	var working sync.WaitGroup
	for range 8 {
		working.Go(func() {
			for range q.Items() {
				continue
			}
		})
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		q.AddWith(benchAdd, keys[i%len(keys)])
		for i%64 == 0 && q.Len() > 1000 {
			runtime.Gosched()
		}
	}
	q.ShutDown()
	working.Wait()
}

// 100,000 distinct keys added at once, as by an initial list.
func BenchmarkBulkOf100000(b *testing.B) {
	keys := benchKeys(100_000)
	how := benchAdd
	how.Priority = workqueue.Low
	b.ReportAllocs()
	for b.Loop() {
		q := workqueue.New(workqueue.Options[object.Key]{})
		q.AddWith(how, keys...)
		q.ShutDown()
		for range q.Items() {
			continue
		}
	}
}
