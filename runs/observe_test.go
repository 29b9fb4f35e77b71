// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// An observer gets each run, also those that the record counts in an earlier one, with the numbers of the record.
func TestAnObserverGetsEachRun(t *testing.T) {
	record := newRecord(t, runs.LeastBytes)
	loop := record.Loop("deployment", "apps", "Deployment")
	web := object.Key{Namespace: "shop", Name: "web"}
	var seen []runs.Run
	record.Observe(func(run runs.Run) { seen = append(seen, run) })
	writes := []runs.Write{{Verb: "update", Object: runs.Object{Kind: "Pod", Name: "a"}, Version: "7"}}
	runs.Add(loop, web, &runs.Ended{Began: noon, Outcome: runs.Done, Causes: causesOf(web)})
	runs.Add(loop, web, &runs.Ended{Began: noon.Add(time.Second), Outcome: runs.Done, Causes: causesOf(web)}) // counted
	runs.Add(loop, web, &runs.Ended{Began: noon.Add(2 * time.Second), Took: time.Second, Next: time.Minute, Outcome: runs.Again, Writes: writes, Attempt: 3})
	runs.Add(record.Loop("nodes", "", ""), "all", &runs.Ended{Began: noon, Outcome: runs.Failed, Error: "no"})
	writes[0].Verb = "delete" // the observer has a copy
	record.Observe(nil)
	runs.Add(loop, web, &runs.Ended{Began: noon, Outcome: runs.Done})

	if len(seen) != 4 {
		t.Fatalf("%d runs were observed, want 4", len(seen))
	}
	for i, run := range seen {
		if run.Number != uint64(i+1) || run.Runs != 1 {
			t.Errorf("run %d is %+v", i+1, run)
		}
	}
	if of := seen[1]; len(of.Causes) != 1 || of.Causes[0].Version != "4711" || of.LastVersion != "4711" || of.Object.Kind != "Deployment" || of.Key != "shop/web" {
		t.Errorf("the run that is counted in another is %+v", of)
	}
	if of := seen[2]; of.Writes[0].Verb != "update" || of.Attempt != 3 || !of.NextLook.Equal(noon.Add(2*time.Second+time.Second+time.Minute)) {
		t.Errorf("the run that wrote is %+v", of)
	}
	if of := seen[3]; of.Key != "all" || of.Object != (runs.Object{}) || of.Error != "no" {
		t.Errorf("the run for a key that is no object is %+v", of)
	}
	found, _ := record.Find(runs.Query{Wrote: true})
	if len(found) != 1 || found[0].Number != seen[2].Number {
		t.Errorf("the record has %+v, want the number that was observed", found)
	}
}

// Without an observer, a run that is counted in an earlier one costs no allocation.
func TestARecordWithoutAnObserverAllocatesNothing(t *testing.T) {
	record := newRecord(t, runs.LeastBytes)
	loop := record.Loop("deployment", "apps", "Deployment")
	key, run := object.Key{Namespace: "shop", Name: "web"}, &runs.Ended{Began: noon, Outcome: runs.Done}
	record.Observe(func(runs.Run) {})
	runs.Add(loop, key, run)
	record.Observe(nil)
	if n := testing.AllocsPerRun(1000, func() { runs.Add(loop, key, run) }); n != 0 {
		t.Errorf("adding a run allocates %v times", n)
	}
}
