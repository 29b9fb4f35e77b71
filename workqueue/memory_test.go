// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/object"
)

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	how := Add{Cause: Cause{Source: "pods", Verb: Updated, Ref: object.Ref{Kind: "Pod"}, Version: "4711"}}
	name := strings.Repeat("w", 50)
	for test, fair := range map[string]func(object.Key) string{
		"in order": nil,
		"fair":     func(k object.Key) string { return k.Namespace },
	} {
		t.Run(test, func(t *testing.T) {
			q := New(Options[object.Key]{Fair: fair, Limiter: &Exponential[object.Key]{Base: time.Hour}})
			defer q.ShutDown()
			round := func() {
				for i := range 50 {
					how.Priority = Priority(i % 5)
					how.RateLimited = i%10 == 0
					q.AddWith(how, object.Key{Namespace: []string{"a", "b", "c"}[i%3], Name: name[:i+1]})
				}
				for q.Len() > 0 {
					item, _ := q.Get()
					q.AddWith(how, item.Key)
					q.Done(item.Key)
					item, _ = q.Get()
					q.Done(item.Key)
					q.Forget(item.Key)
				}
			}
			rounds := func() {
				for range 20 { // enough to show what is allocated many at a time
					round()
				}
			}
			if n := testing.AllocsPerRun(10, rounds); n > 0 {
				t.Errorf("%v allocations in 20 rounds, want none", n)
			}
		})
	}
}

func TestMemoryOfABurstIsGivenBack(t *testing.T) {
	const burst = 100_000
	q := New(Options[int]{Fair: func(key int) string { return string(rune(key)) }})
	defer q.ShutDown()
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for key := range burst {
		q.AddWith(Add{Cause: Cause{Source: "pods"}}, key)
	}
	full := heap()
	for q.Len() > 0 {
		item, _ := q.Get()
		q.Done(item.Key)
	}
	after := heap()
	if kept := after - before; kept > 1<<20 {
		t.Errorf("%d bytes are kept of the %d of a burst, want at most 1 MiB", kept, full-before)
	}
	t.Logf("%d bytes a key in the burst, %d kept in all", (full-before)/burst, after-before)
	runtime.KeepAlive(q)
}
