// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

func keys(n int) []object.Key {
	ks := make([]object.Key, n)
	for i := range ks {
		ks[i] = object.Key{Namespace: fmt.Sprintf("team-%d", i%50), Name: fmt.Sprintf("web-%d", i)}
	}
	return ks
}

func BenchmarkOneGoroutine(b *testing.B) {
	ks := keys(1000)
	how := workqueue.Add{Cause: workqueue.Cause{Source: "pods", Verb: workqueue.Updated,
		Ref: object.Ref{Kind: "Pod", Key: ks[0], UID: "1"}, Version: "4711"}}
	prios := []workqueue.Priority{workqueue.Low, workqueue.Normal, workqueue.High}
	b.Run("plain", func(b *testing.B) {
		q := workqueue.New(workqueue.Options[object.Key]{})
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			q.Add(ks[i%1000])
			item, _ := q.Get()
			q.Done(item.Key)
		}
	})
	for _, backlog := range []int{0, 1, 900} {
		b.Run(fmt.Sprintf("cause,priority,backlog=%d", backlog), func(b *testing.B) {
			q := workqueue.New(workqueue.Options[object.Key]{})
			for i := range backlog {
				how.Priority = prios[i%3]
				q.AddWith(how, ks[i])
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				how.Priority = prios[i%3]
				q.AddWith(how, ks[(i+backlog)%1000])
				item, _ := q.Get()
				q.Done(item.Key)
			}
		})
	}
}

func BenchmarkEightConsumers(b *testing.B) {
	ks := keys(1000)
	how := workqueue.Add{Cause: workqueue.Cause{Source: "pods", Verb: workqueue.Updated,
		Ref: object.Ref{Kind: "Pod", Key: ks[0], UID: "1"}, Version: "4711"}}
	b.Run("cause", func(b *testing.B) {
		q := workqueue.New(workqueue.Options[object.Key]{})
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for {
					item, ok := q.Get()
					if !ok {
						return
					}
					q.Done(item.Key)
				}
			})
		}
		b.ReportAllocs()
		b.ResetTimer()
		for i := range b.N {
			q.AddWith(how, ks[i%1000])
		}
		q.ShutDown()
		wg.Wait()
	})
}
