// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"slices"
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

// A queue keeps one cause for all changes of an object that come while a key waits. Each of them led to the run.
func TestAllChangesOfOneCauseAreOrigins(t *testing.T) {
	record := newRecord(t, runs.LeastBytes)
	set := runs.Object{Group: "apps", Kind: "ReplicaSet", Namespace: "ns", Name: "web", UID: "u"}
	other := runs.Object{Group: "apps", Kind: "ReplicaSet", Namespace: "ns", Name: "db", UID: "v"}
	sets, deployments, autoscalers := record.Loop("sets", "apps", "ReplicaSet"), record.Loop("deployments", "apps", "Deployment"), record.Loop("autoscalers", "", "")
	at := noon
	writes := func(loop *runs.Loop, name string, all ...runs.Write) {
		at = at.Add(time.Second)
		runs.Add(loop, object.Key{Namespace: "ns", Name: name}, &runs.Ended{Began: at, Outcome: runs.Done, Writes: all})
	}
	write := func(of runs.Object, version string) runs.Write {
		return runs.Write{Verb: "update", Object: of, Version: version}
	}
	writes(autoscalers, "before", write(set, "100"))                                  // is the version before
	writes(deployments, "web", write(set, "110"))                                     // is found by its object
	writes(autoscalers, "db", write(other, "111"))                                    // is about another object
	writes(sets, "web", write(set, "115"))                                            // is found by its key
	writes(deployments, "web", write(other, "116"))                                   // is about another object
	writes(sets, "web", runs.Write{Verb: "delete", Object: other}, write(set, "120")) // is the version after
	run := runs.Run{Number: 99, Began: at.Add(time.Millisecond), Causes: []runs.Cause{{Source: "sets", Verb: workqueue.Updated, Object: set, From: "100", Version: "120"}}}
	writes(deployments, "web", write(set, "117")) // began later: is of another history
	writes(deployments, "web", write(set, "130")) // is a later change

	versions := func(run *runs.Run) (all []string) {
		for _, o := range record.Origins(run) {
			if o.Cause != run.Causes[0] || o.Run == nil || o.Run.Writes[len(o.Run.Writes)-1].Version != o.Write.Version {
				t.Errorf("an origin is %+v", o)
				continue
			}
			all = append(all, o.Write.Version)
		}
		return all
	}
	if got, want := versions(&run), []string{"120", "110", "115"}; !slices.Equal(got, want) {
		t.Errorf("the origins are the versions %v, want %v", got, want)
	}
	// A change that follows the one before directly stands for itself, as does an object that is new.
	for _, from := range []string{"119", "", "none"} {
		run.Causes[0].From = from
		if got, want := versions(&run), []string{"120"}; !slices.Equal(got, want) {
			t.Errorf("from version %q, the origins are the versions %v, want %v", from, got, want)
		}
	}
}

// The chain is bounded, however many changes one cause stands for.
func TestTheOriginsOfManyChangesAreBounded(t *testing.T) {
	record := newRecord(t, runs.LeastBytes)
	box := runs.Object{Kind: "ConfigMap", Namespace: "ns", Name: "box", UID: "u"}
	writers := record.Loop("writers", "", "")
	for i := range 200 {
		runs.Add(writers, object.Key{Name: strconv.Itoa(i)}, &runs.Ended{Began: noon, Outcome: runs.Done, Writes: []runs.Write{
			{Verb: "update", Object: box, Version: strconv.Itoa(1000 + i)},
		}})
	}
	run := runs.Run{Number: 999, Began: noon, Causes: []runs.Cause{{Verb: workqueue.Updated, Object: box, From: "1", Version: "1199"}}}
	origins := record.Origins(&run)
	if len(origins) != 9 || origins[0].Write.Version != "1199" || origins[1].Write.Version != "1198" || origins[8].Write.Version != "1191" {
		t.Errorf("the cause has %d origins, want the last change and the eight before it: %+v", len(origins), origins)
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
