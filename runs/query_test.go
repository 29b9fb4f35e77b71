// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// hotRecord returns a full record of the default size: one key runs again and again, and each of its runs writes; another key
// waits for something in each run.
func hotRecord(t testing.TB) *runs.Record {
	t.Helper()
	record := newRecord(t, runs.DefaultBytes)
	writing, waiting := record.Loop("writing", "", "ConfigMap"), record.Loop("waiting", "", "ConfigMap")
	box := runs.Object{Kind: "ConfigMap", Namespace: "shop", Name: "box", UID: "0c9a4c0e-5a3e-4f57-9d8f-1f2e3d4c5b6a"}
	now := time.Unix(1_700_000_000, 0)
	for i := 0; record.Stats().Dropped == 0; i++ {
		now = now.Add(time.Millisecond)
		runs.Add(writing, box.Ref().Key, &runs.Ended{Began: now, Outcome: runs.Done,
			Writes: []runs.Write{{Verb: "update", Object: box, Version: fmt.Sprint(i + 1), Fields: []string{"data.a"}}}})
		if i%100 == 0 {
			runs.Add(waiting, object.Key{Namespace: "shop", Name: fmt.Sprint("other-", i)}, &runs.Ended{Began: now, Outcome: runs.Done,
				Reasons: []runs.Reason{{Code: "Waits", Text: "waits for {n}", Params: []runs.Param{{Name: "n", Value: fmt.Sprint(i)}}}}})
		}
	}
	return record
}

// BenchmarkFind asks a full record: about an object whose controller runs in a hot loop, and for the newest runs of all.
func BenchmarkFind(b *testing.B) {
	record := hotRecord(b)
	for name, q := range map[string]runs.Query{
		"hot loop": {Object: runs.Object{Kind: "ConfigMap", Namespace: "shop", Name: "box"}, Limit: 60},
		"newest":   {Limit: 100},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if found, more := record.Find(q); len(found) != q.Limit || !more {
					b.Fatalf("%d runs were found (more: %v)", len(found), more)
				}
			}
		})
	}
}

// BenchmarkPresent asks a full record for what controllers wait for.
func BenchmarkPresent(b *testing.B) {
	record := hotRecord(b)
	b.ReportAllocs()
	for b.Loop() {
		if len(record.Present(runs.Query{})) == 0 {
			b.Fatal("no run states a reason")
		}
	}
}

// A query that is answered while runs are added, counted and dropped has each run once, the newest first.
func TestAQueryDuringRuns(t *testing.T) {
	record := newRecord(t, runs.LeastBytes)
	loop := record.Loop("a", "", "Pod")
	now := time.Unix(1_700_000_000, 0)
	var adding sync.WaitGroup
	stop := make(chan struct{})
	adding.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			run := &runs.Ended{Began: now.Add(time.Duration(i)), Outcome: runs.Done}
			switch i % 3 {
			case 0:
				run.Outcome, run.Error = runs.Failed, "refused"
			case 1:
				run.Writes = []runs.Write{{Verb: "update", Object: runs.Object{Kind: "Pod", Namespace: "ns", Name: fmt.Sprint("p", i%5)}, Version: fmt.Sprint(i + 1)}}
			}
			runs.Add(loop, object.Key{Namespace: "ns", Name: fmt.Sprint("p", i%7)}, run)
		}
	})
	for i := range 300 {
		q := runs.Query{Limit: 50}
		if i%2 == 0 {
			q.Object = runs.Object{Kind: "Pod", Namespace: "ns", Name: "p3"}
		}
		known := map[uint64]bool{}
		found, _ := record.Find(q)
		for k := range found {
			if known[found[k].Number] {
				t.Fatalf("run %d is there twice", found[k].Number)
			}
			known[found[k].Number] = true
			if k > 0 && found[k].Last.After(found[k-1].Last) {
				t.Fatalf("run %d is newer than the one before it", found[k].Number)
			}
		}
	}
	close(stop)
	adding.Wait()
}
