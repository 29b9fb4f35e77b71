// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// again adds n runs of one key, each caused by the one before: those that wrote alternate with those that changed
// nothing, and all writes have one version, as patches without effect have. It returns the newest run.
func again(t testing.TB, record *runs.Record, n int) runs.Run {
	t.Helper()
	box := object.Key{Namespace: "ns", Name: "box"}
	loop := record.Loop("polisher", "", "ConfigMap")
	// Another loop of the name, over keys that are no objects, must not be mixed up with it.
	other := record.Loop("polisher", "", "")
	queue := workqueue.New(workqueue.Options[object.Key]{})
	for i := range n {
		at := noon.Add(time.Duration(i) * time.Millisecond)
		queue.AddWith(workqueue.Add{Cause: workqueue.Cause{Source: "again", Verb: workqueue.Retry}}, box)
		item, _ := queue.Get()
		run := &runs.Ended{Began: at, Outcome: runs.Again, Causes: item.Causes}
		if i%2 == 0 {
			run.Writes = []runs.Write{{Verb: "patch", Version: "77", Object: runs.Object{Kind: "ConfigMap", Namespace: "ns", Name: "box", UID: "u"}}}
		} else {
			run.Outcome, run.Error = runs.Failed, "attempt "+strconv.Itoa(i) // so that no two are counted in one
		}
		runs.Add(loop, box, run)
		runs.Add(other, box, &runs.Ended{Began: at, Outcome: runs.Failed, Error: "attempt " + strconv.Itoa(i)})
		queue.Done(item.Key)
	}
	found, _ := record.Find(runs.Query{Object: runs.Object{Kind: "ConfigMap", Namespace: "ns", Name: "box"}, Limit: 1})
	if len(found) != 1 {
		t.Fatalf("found %d runs", len(found))
	}
	return found[0]
}

func TestARetryIsCausedByTheRunBefore(t *testing.T) {
	record := newRecord(t, runs.LeastBytes)
	run := again(t, record, 40)
	for step := range 10 {
		origins := record.Origins(&run)
		if len(origins) != 1 || origins[0].Run == nil {
			t.Fatalf("step %d: the origins of run %d are %+v", step, run.Number, origins)
		}
		before := *origins[0].Run
		if before.Number != run.Number-2 || before.Controller != "polisher" || before.Object.Kind != "ConfigMap" {
			t.Fatalf("step %d: run %d was caused by run %d of %s", step, run.Number, before.Number, before.Object)
		}
		run = before
	}
}

// The writes of one version are all of the same change, and the newest run stands for them.
func TestAVersionIsThatOfTheNewestRunThatWroteIt(t *testing.T) {
	record := newRecord(t, runs.LeastBytes)
	newest := again(t, record, 41)
	run, write, found := record.Wrote(runs.Object{Kind: "ConfigMap", Namespace: "ns", Name: "box", UID: "u"}, "77")
	if !found || write != 0 || run.Number != newest.Number {
		t.Errorf("version 77 is of run %d (%v), want %d", run.Number, found, newest.Number)
	}
	if _, _, found := record.Wrote(runs.Object{Kind: "ConfigMap", Namespace: "ns", Name: "box", UID: "another"}, "77"); found {
		t.Error("a run of another object is found")
	}
}

// What a chain of causes costs in a full record of a controller that runs again and again.
func BenchmarkOriginsOfAHotLoop(b *testing.B) {
	record := newRecord(b, 16<<20)
	run := again(b, record, 50_000)
	b.ResetTimer()
	for b.Loop() {
		record.Origins(&run)
	}
}
