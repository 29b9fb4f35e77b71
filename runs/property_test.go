// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// naive is the record without bound: a list.
type naive struct{ all []*runs.Run }

// add adds a run, or counts it in the newest one of its key and of its sort that ended alike.
func (n *naive) add(controller string, key object.Key, e *runs.Ended, number uint64) {
	run := runOf(controller, key, e, number)
	for _, before := range slices.Backward(n.all) {
		if before.Controller != run.Controller || before.Key != run.Key || idle(before) != idle(run) {
			continue
		}
		if len(run.Writes)+len(before.Writes) == 0 && alike(before, run) {
			before.Runs++
			before.Last, before.NextLook, before.LastVersion = run.Last, run.NextLook, run.LastVersion
			return
		}
		break
	}
	n.all = append(n.all, run)
}

func idle(r *runs.Run) bool {
	return len(r.Writes)+len(r.Reasons) == 0 && (r.Outcome == runs.Done || r.Outcome == runs.Again)
}

func alike(a, b *runs.Run) bool {
	causes := func(r *runs.Run) (all []runs.Cause) {
		if idle(r) {
			for _, c := range r.Causes {
				c.From, c.Version = "", ""
				all = append(all, c)
			}
		}
		return all
	}
	return a.Outcome == b.Outcome && a.Error == b.Error && reflect.DeepEqual(a.Reasons, b.Reasons) && reflect.DeepEqual(causes(a), causes(b))
}

// runOf returns a run as the record should have it.
func runOf(controller string, key object.Key, e *runs.Ended, number uint64) *runs.Run {
	run := &runs.Run{
		Number: number, Controller: controller, Key: key.String(), Object: runs.Object{Kind: "Pod", Namespace: key.Namespace, Name: key.Name},
		Wait:    runs.Wait{Delay: e.Delayed, Before: e.Before, Queue: e.Queued, Priority: e.Priority},
		Attempt: e.Attempt, Began: e.Began, Took: e.Took, Outcome: e.Outcome, Error: e.Error,
		Writes: e.Writes, Reasons: e.Reasons, Runs: 1, Last: e.Began, More: e.Causes.Dropped(),
	}
	if e.Next > 0 {
		at := e.Began.Add(e.Took + e.Next)
		run.NextLook = &at
	}
	for c := range e.Causes.All() {
		if run.LastVersion == "" && len(run.Causes) == 0 {
			run.LastVersion = c.Version
		}
		run.Causes = append(run.Causes, runs.Cause{Source: c.Source, Verb: c.Verb, Object: runs.ObjectOf(c.Ref), From: c.From, Version: c.Version})
	}
	return run
}

// history makes random runs.
type history struct {
	*rand.Rand
	queue *workqueue.Queue[object.Key]
	now   time.Time
	v     int
}

func (h *history) version() string { h.v++; return fmt.Sprint(h.v) }

func (h *history) run(key object.Key) *runs.Ended {
	h.now = h.now.Add(time.Duration(1 + h.IntN(1e9)))
	e := &runs.Ended{Began: h.now, Took: time.Duration(h.IntN(1e6)), Outcome: runs.Done, Causes: h.causes(key),
		Queued: time.Duration(h.IntN(1000)), Before: time.Duration(h.IntN(2)), Priority: h.IntN(201) - 100}
	switch h.IntN(8) {
	case 0:
		e.Outcome, e.Error, e.Attempt, e.Next = runs.Failed, fmt.Sprint("error ", h.IntN(2)), h.IntN(3), time.Second
	case 1:
		e.Reasons = []runs.Reason{{Code: "Waits", Text: "waits for {n}", Params: []runs.Param{{Name: "n", Value: fmt.Sprint(h.IntN(2))}},
			Until: runs.Object{Kind: "Node", Name: "n", UID: "not-a-uuid"}}}
		e.Reasons[0].Normal = e.Reasons[0].Params[0].Value == "0" // the same code and parameters are the same state
		if h.IntN(2) == 0 {
			e.Reasons[0].About = runs.Object{Kind: "Job", Namespace: "ns", Name: fmt.Sprint("j", h.IntN(5)), UID: "0c9a4c0e-5a3e-4f57-9d8f-1f2e3d4c5b6a"}
		}
	case 2, 3:
		for range 1 + h.IntN(5) {
			e.Writes = append(e.Writes, runs.Write{Verb: "patch", Subresource: "status", Version: h.version(), Manager: "m", Fields: []string{"spec.a", "status"},
				Object: runs.Object{Kind: "Pod", Namespace: key.Namespace, Name: fmt.Sprint("p", h.IntN(9)), UID: "0c9a4c0e-5a3e-4f57-9d8f-1f2e3d4c5b6a"}})
		}
	case 4:
		e.Outcome, e.Next = runs.Again, time.Minute
	}
	return e
}

// causes returns causes that a queue hands out.
func (h *history) causes(key object.Key) workqueue.Causes {
	for range h.IntN(6) {
		of := object.Ref{Kind: "Pod", Key: object.Key{Namespace: "ns", Name: fmt.Sprint("p", h.IntN(5))}}
		if h.IntN(3) == 0 {
			of.Key, of.UID = key, "0c9a4c0e-5a3e-4f57-9d8f-1f2e3d4c5b6a"
		}
		h.queue.AddWith(workqueue.Add{Cause: workqueue.Cause{Source: "pods", Verb: workqueue.Updated, Version: h.version(), From: "7", Ref: of}}, key)
	}
	h.queue.Add(key)
	item, _ := h.queue.Get()
	return item.Causes
}

func TestARandomHistoryIsAsAListWouldHaveIt(t *testing.T) {
	for _, size := range []int{runs.LeastBytes, 1 << 20} {
		seed := rand.Uint64()
		t.Logf("seed %d, %d bytes", seed, size)
		randomHistory(t, rand.New(rand.NewPCG(seed, 1)), size)
	}
}

func randomHistory(t *testing.T, random *rand.Rand, size int) {
	t.Helper()
	record, err := runs.New(size)
	if err != nil {
		t.Fatal(err)
	}
	h := &history{Rand: random, queue: workqueue.New(workqueue.Options[object.Key]{}), now: time.Unix(1_700_000_000, 0)}
	var model naive
	loops := map[string]*runs.Loop{"a": record.Loop("a", "", "Pod"), "b": record.Loop("b", "", "Pod")}
	const history = 4000
	for i := range history {
		controller, key := []string{"a", "b"}[h.IntN(2)], object.Key{Namespace: "ns", Name: fmt.Sprint("k", h.IntN(40))}
		e := h.run(key)
		runs.Add(loops[controller], key, e)
		model.add(controller, key, e, uint64(i+1))
		h.queue.Done(key)
		if s := record.Stats(); s.Bytes > size {
			t.Fatalf("after %d runs the record has %d bytes, the bound is %d", i, s.Bytes, size)
		}
		if i%1000 == 999 {
			compare(t, record, &model)
		}
	}
}

// compare compares all queries of the record with the list.
func compare(t *testing.T, record *runs.Record, model *naive) {
	t.Helper()
	since := record.Stats().Since
	found, more := record.Find(runs.Query{Limit: 1 << 30})
	if more {
		t.Fatal("there are more runs than the limit")
	}
	byNumber := map[uint64]*runs.Run{}
	for i := range found {
		byNumber[found[i].Number] = &found[i]
	}
	kept, known := 0, map[uint64]bool{}
	for _, want := range model.all {
		known[want.Number] = true
		got := byNumber[want.Number]
		switch {
		case got != nil:
			if kept++; !same(got, want) {
				t.Fatalf("the record has\n%+v, the list\n%+v", *got, *want)
			}
			if idle(got) && got.Last.Before(since) {
				t.Fatalf("run %d changed nothing and is kept, although newer ones that did are missing", got.Number)
			}
		case !idle(want) && want.Last.After(since):
			t.Fatalf("run %d of %v is missing; all since %v should be there: %+v", want.Number, want.Last, since, *want)
		}
	}
	// A run that ended like one that was dropped begins a new entry, of which the list does not know.
	for n := range byNumber {
		if !known[n] && since.IsZero() && !idle(byNumber[n]) {
			t.Fatalf("run %d is not in the list", n)
		}
	}
	if kept == 0 {
		t.Fatal("nothing is kept")
	}
	compareQueries(t, record, found)
}

// compareQueries compares queries by key, object and version with a look at all runs.
func compareQueries(t *testing.T, record *runs.Record, all []runs.Run) {
	t.Helper()
	numbers := func(of []runs.Run, chooses func(*runs.Run) bool) (n []uint64) {
		for i := range of {
			if chooses(&of[i]) {
				n = append(n, of[i].Number)
			}
		}
		return n
	}
	each := func(*runs.Run) bool { return true }
	for _, name := range []string{"k0", "k17", "p3"} {
		o := runs.Object{Kind: "Pod", Namespace: "ns", Name: name}
		found, _ := record.Find(runs.Query{Object: o, Limit: 1 << 30})
		want := numbers(all, func(r *runs.Run) bool {
			return r.Object == o || slices.ContainsFunc(r.Writes, func(w runs.Write) bool { return w.Object.Name == name })
		})
		if got := numbers(found, each); !slices.Equal(got, want) {
			t.Fatalf("the runs of %v are %d, want %d", o, got, want)
		}
		found, _ = record.Find(runs.Query{Controller: "a", Key: "ns/" + name, Limit: 3})
		want = numbers(all, func(r *runs.Run) bool { return r.Controller == "a" && r.Key == "ns/"+name })
		if got := numbers(found, each); !slices.Equal(got, want[:min(len(want), 3)]) {
			t.Fatalf("the newest runs of key %s are %d, want those of %d", name, got, want)
		}
	}
	comparePresent(t, record, all)
	for i := range all {
		for k, w := range all[i].Writes {
			run, at, ok := record.Wrote(w.Object, w.Version)
			if !ok || run.Number != all[i].Number || at != k {
				t.Fatalf("version %s was written by run %d (%v), want %d", w.Version, run.Number, ok, all[i].Number)
			}
		}
	}
}

// comparePresent compares what is stated about a key, and about an object that is no key, with a look at all runs.
func comparePresent(t *testing.T, record *runs.Record, all []runs.Run) {
	t.Helper()
	last := map[string]*runs.Run{} // by loop and key
	for i := range all {
		r := &all[i]
		if before := last[r.Controller+r.Key]; before == nil || r.Last.After(before.Last) {
			last[r.Controller+r.Key] = r
		}
	}
	for _, o := range []runs.Object{{}, {Kind: "Pod", Namespace: "ns", Name: "k3"}, {Kind: "Job", Namespace: "ns", Name: "j2"}} {
		var want []string
		for _, r := range last {
			ofKey := o == runs.Object{} || r.Object == o
			if len(r.Reasons) > 0 && (ofKey || r.Reasons[0].About.Name == o.Name) {
				want = append(want, fmt.Sprint(r.Number, r.Reasons))
			}
		}
		var got []string
		for _, r := range record.Present(runs.Query{Object: o}) {
			got = append(got, fmt.Sprint(r.Number, r.Reasons))
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("present about %v are\n%q, want\n%q", o, got, want)
		}
	}
}

// same compares two runs. Of times the moment counts.
func same(got, want *runs.Run) bool {
	a, b := *got, *want
	moments := a.Began.Equal(b.Began) && a.Last.Equal(b.Last) && (a.NextLook == nil) == (b.NextLook == nil) &&
		(a.NextLook == nil || a.NextLook.Equal(*b.NextLook))
	for _, r := range [...]*runs.Run{&a, &b} {
		r.Began, r.Last, r.NextLook = time.Time{}, time.Time{}, nil
	}
	return moments && reflect.DeepEqual(a, b)
}
