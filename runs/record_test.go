// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

var noon = time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)

func newRecord(t testing.TB, bytes int) *runs.Record {
	t.Helper()
	record, err := runs.New(bytes)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func TestARecordThatIsTooSmallIsRefused(t *testing.T) {
	for _, bytes := range []int{-1, 0, runs.LeastBytes - 1} {
		if _, err := runs.New(bytes); err == nil || !strings.Contains(err.Error(), "want 262144 to") {
			t.Errorf("a record of %d bytes: %v, want an error with the bounds", bytes, err)
		}
	}
}

// A run that writes more objects than an entry has room for keeps the first of them, and the number of the others.
func TestARunWithThousandsOfWritesIsCut(t *testing.T) {
	record := newRecord(t, runs.LeastBytes)
	run := &runs.Ended{Began: noon, Outcome: runs.Done}
	for i := range 5000 {
		run.Writes = append(run.Writes, runs.Write{Verb: "create", Version: fmt.Sprint(i + 1),
			Object: runs.Object{Kind: "Pod", Namespace: "ns", Name: fmt.Sprint("web-", i), UID: "0c9a4c0e-5a3e-4f57-9d8f-1f2e3d4c5b6a"}})
	}
	runs.Add(record.Loop("replicaset", "apps", "ReplicaSet"), object.Key{Namespace: "ns", Name: "web"}, run)
	found, _ := record.Find(runs.Query{})
	if len(found) != 1 || len(found[0].Writes) < 50 || len(found[0].Writes)+found[0].MoreWrites != 5000 {
		t.Fatalf("the record has %d runs; the first has %d writes and %d more, want 5000 in all", len(found), len(found[0].Writes), found[0].MoreWrites)
	}
	if s := record.Stats(); s.Bytes > s.Limit {
		t.Errorf("the record has %d bytes, more than %d", s.Bytes, s.Limit)
	}
}

// Texts without end do not break the bound: the entry is cut.
func TestARunWithHugeTextsIsCut(t *testing.T) {
	record := newRecord(t, runs.LeastBytes)
	huge := strings.Repeat("ä", 1<<16)
	var params []runs.Param
	for range 100 {
		params = append(params, runs.Param{Name: huge, Value: huge})
	}
	run := &runs.Ended{Began: noon, Outcome: runs.Failed, Error: huge}
	for range 100 {
		run.Reasons = append(run.Reasons, runs.Reason{Code: huge, Text: huge, Params: params, Ends: huge, Until: runs.Object{Kind: huge, Name: huge}})
	}
	runs.Add(record.Loop(huge, "", "Pod"), object.Key{Namespace: huge, Name: huge}, run)
	if s := record.Stats(); s.Bytes > s.Limit {
		t.Errorf("the record has %d bytes, more than %d", s.Bytes, s.Limit)
	}
	found, _ := record.Find(runs.Query{})
	if len(found) != 1 || found[0].Outcome != runs.Failed || len(found[0].Error) > 512 || !strings.HasPrefix(huge, found[0].Error) {
		t.Fatalf("the record has %+v, want one run that failed, with the beginning of its error", found)
	}
}

// A run whose cause is a delete is joined with the delete, which made no version.
func TestADeleteIsTheOriginOfARun(t *testing.T) {
	record := newRecord(t, runs.LeastBytes)
	pod := runs.Object{Kind: "Pod", Namespace: "ns", Name: "web-1", UID: "u"}
	sets := record.Loop("replicaset", "apps", "ReplicaSet")
	runs.Add(sets, object.Key{Namespace: "ns", Name: "web"}, &runs.Ended{Began: noon, Outcome: runs.Done, Writes: []runs.Write{{Verb: "delete", Object: pod}}})
	run := runs.Run{Number: 99, Began: noon.Add(time.Second), Causes: []runs.Cause{
		{Source: "pods", Verb: "Deleted", Object: pod, Version: "12"},
		{Source: "pods", Verb: "Deleted", Object: runs.Object{Kind: "Pod", Namespace: "ns", Name: "web-1", UID: "another"}, Version: "13"},
		{Source: "every 10s", Verb: "Fed"},
	}}
	origins := record.Origins(&run)
	if len(origins) != 3 || origins[0].Run == nil || origins[0].Write.Verb != "delete" {
		t.Fatalf("the origins are %+v, want the run that deleted the Pod", origins)
	}
	if origins[1].Run != nil || origins[1].NotKnown != runs.WrittenByOthers || origins[2].NotKnown != runs.NotAnObject {
		t.Errorf("the origins are %+v, want nobody for another Pod of the name and for what is no object", origins[1:])
	}
}

// counted is a reason whose words depend on a number.
func counted(n string) runs.Reason {
	return runs.Reason{Text: "{n} {n?Pod stays|Pods stay}, and {n?it is|they are} old", Params: []runs.Param{{Name: "n", Value: n}}}
}

// A sentence has its parameters, words fit their numbers, and what is in braces without a parameter stays.
func TestSentences(t *testing.T) {
	for _, c := range []struct {
		reason runs.Reason
		want   string
	}{
		{runs.Reason{Text: "plain {x}"}, "plain {x}"},
		{runs.Reason{Text: "{n} of {m} {x} {", Params: []runs.Param{{Name: "n", Value: "{m}"}, {Name: "m", Value: "3"}}}, "{m} of 3 {x} {"},
		{counted("1"), "1 Pod stays, and it is old"},
		{counted("3"), "3 Pods stay, and they are old"},
		{counted("0"), "0 Pods stay, and they are old"},
		{runs.Reason{Text: "{n?Pod|Pods} {x?a|b} {n?Pod", Params: []runs.Param{{Name: "n", Value: "1"}}}, "Pod {x?a|b} {n?Pod"},
		{runs.Reason{Text: "{n?Pod}", Params: []runs.Param{{Name: "n", Value: "2"}}}, ""},
		{runs.Reason{Text: "waits", Ends: "a change"}, "waits (until a change)"},
		{runs.Reason{Text: "waits", Until: runs.Object{Kind: "Node", Name: "a"}}, "waits (until Node a changes)"},
	} {
		if got := c.reason.String(); got != c.want {
			t.Errorf("the reason is %q, want %q", got, c.want)
		}
	}
}

// causesOf returns a cause as an informer makes it.
func causesOf(key object.Key) workqueue.Causes {
	queue := workqueue.New(workqueue.Options[object.Key]{})
	queue.AddWith(workqueue.Add{Cause: workqueue.Cause{Source: "deployments", Verb: workqueue.Updated, From: "4710", Version: "4711",
		Ref: object.Ref{Group: "apps", Kind: "Deployment", Key: key, UID: "0c9a4c0e-5a3e-4f57-9d8f-1f2e3d4c5b6a"}}}, key)
	item, _ := queue.Get()
	return item.Causes
}

// What adding a run costs: one that is counted in an earlier one of its key, of one key and of many, and one that wrote.
func BenchmarkAdd(b *testing.B) {
	write := []runs.Write{{Verb: "update", Subresource: "status", Version: "4711", Fields: []string{"status.readyReplicas"},
		Object: runs.Object{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "0c9a4c0e-5a3e-4f57-9d8f-1f2e3d4c5b6a"}}}
	keys := make([]object.Key, 20_000)
	for i := range keys {
		keys[i] = object.Key{Namespace: "shop", Name: fmt.Sprintf("deployment-%05d-6d4cf56db6-%05d", i/10, i)}
	}
	for _, c := range []struct {
		name   string
		keys   int
		writes []runs.Write
	}{{"counted", 1, nil}, {"of 20,000 keys", len(keys), nil}, {"writing", 1, write}} {
		causes := make([]workqueue.Causes, c.keys)
		for i := range causes {
			causes[i] = causesOf(keys[i])
		}

		b.Run(c.name, func(b *testing.B) {
			loop := newRecord(b, runs.DefaultBytes).Loop("deployment", "apps", "Deployment")
			run := &runs.Ended{Began: noon, Outcome: runs.Done, Writes: c.writes, Causes: causesOf(keys[0])}
			for i, key := range keys[:c.keys] {
				run.Causes = causes[i]
				runs.Add(loop, key, run)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				run.Causes = causes[i%c.keys]
				runs.Add(loop, keys[i%c.keys], run)
				i++
			}
		})
	}
}

// A key that runs again and again without a change stays in one entry, whatever comes beside it, and is not copied for it
// if nothing comes.
func TestAKeyThatRunsAgainStays(t *testing.T) {
	record := newRecord(t, runs.LeastBytes)
	loop := record.Loop("pods", "", "Pod")
	now := noon
	add := func(name string) {
		now = now.Add(time.Second)
		runs.Add(loop, object.Key{Namespace: "ns", Name: name}, &runs.Ended{Began: now, Outcome: runs.Done})
	}
	const passing, again = 20_000, 10
	// Their entries are longer than the others: one that moves by less than its length overlaps itself.
	name := func(i int) string { return fmt.Sprint("steady-", strings.Repeat("x", 200), i) }
	steady := func() {
		for i := range again {
			add(fmt.Sprint("once-", now.UnixNano()))
			add(name(i))
		}
	}
	steady()
	for i := range passing {
		add(fmt.Sprint("passing-", i))
		if i%10 == 0 {
			add(name(i / 10 % again))
		}
	}
	steady()
	for i := range again {
		found, _ := record.Find(runs.Query{Object: runs.Object{Kind: "Pod", Namespace: "ns", Name: name(i)}})
		if want := 2 + passing/10/again; len(found) != 1 || found[0].Runs != want || !found[0].Began.Before(noon.Add(time.Hour)) {
			t.Fatalf("of a key that ran all the time the record has %+v, want one with %d runs", found, want)
		}
	}
	if found, _ := record.Find(runs.Query{Object: runs.Object{Kind: "Pod", Namespace: "ns", Name: "passing-0"}}); len(found) != 0 {
		t.Errorf("the record has %+v, although %d keys ran after it", found, passing)
	}
	if found, _ := record.Find(runs.Query{Object: runs.Object{Kind: "Pod", Namespace: "ns", Name: fmt.Sprint("passing-", passing-1)}}); len(found) != 1 {
		t.Errorf("of the last key the record has %+v, want its run", found)
	}
}

// Entries of many lengths stay and go as their segments are emptied: what is found of a key is what its last run was.
func TestEntriesThatStayAreWhole(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	record := newRecord(t, runs.LeastBytes)
	loop := record.Loop("pods", "", "Pod")
	name := func(sort string, i, length int) string { return fmt.Sprint(sort, strings.Repeat("x", length), "-", i) }
	lengths := make([]int, 80)
	for i := range lengths {
		lengths[i] = random.IntN(200)
	}
	last := map[string]time.Time{}
	const adds = 20_000
	for i := range adds {
		key := object.Key{Namespace: "ns", Name: name("once", i, random.IntN(200))}
		if random.IntN(3) > 0 {
			k := random.IntN(len(lengths))
			key.Name = name("again", k, lengths[k])
		}
		last[key.String()] = noon.Add(time.Duration(i) * time.Second)
		runs.Add(loop, key, &runs.Ended{Began: last[key.String()], Outcome: runs.Done, Causes: causesOf(key)})
		if i%2000 != 1999 {
			continue
		}
		found, _ := record.Find(runs.Query{Limit: adds})
		if len(found) < 100 {
			t.Fatalf("after %d runs the record has %d", i, len(found))
		}
		seen := map[string]bool{}
		for _, run := range found {
			if newest := !seen[run.Key]; newest && !run.Last.Equal(last[run.Key]) || run.Object.Kind != "Pod" || len(run.Causes) != 1 || run.Causes[0].Object.Name != run.Object.Name {
				t.Fatalf("after %d runs the record has %+v, the last run of its key began at %v", i, run, last[run.Key])
			}
			seen[run.Key] = true
		}
		for k, length := range lengths {
			one, _ := record.Find(runs.Query{Object: runs.Object{Kind: "Pod", Namespace: "ns", Name: name("again", k, length)}})
			if at := last["ns/"+name("again", k, length)]; len(one) == 0 && noon.Add(time.Duration(i)*time.Second).Sub(at) < time.Minute {
				t.Fatalf("after %d runs the record has none of a key that ran at %v", i, at)
			}
		}
	}
}

// A query may choose runs by the namespace and the name of what they are about or wrote, by a time, and those that wrote.
func TestAQueryOfANamespace(t *testing.T) {
	record := newRecord(t, runs.LeastBytes)
	sets := record.Loop("replicaset", "apps", "ReplicaSet")
	pod := func(namespace, name string) runs.Write {
		return runs.Write{Verb: "create", Version: "1", Object: runs.Object{Kind: "Pod", Namespace: namespace, Name: name}}
	}
	add := func(after time.Duration, namespace, name string, writes ...runs.Write) {
		runs.Add(sets, object.Key{Namespace: namespace, Name: name}, &runs.Ended{Began: noon.Add(after), Outcome: runs.Done, Writes: writes})
	}
	add(0, "shop", "web", pod("shop", "web-1"))
	add(time.Minute, "shop", "cart")
	add(2*time.Minute, "other", "web", pod("shop", "visitor"))
	add(3*time.Minute, "other", "db", pod("other", "db-1"))
	for name, c := range map[string]struct {
		query runs.Query
		want  string
	}{
		"a namespace":                  {runs.Query{Namespace: "shop"}, "other/web shop/cart shop/web"},
		"a namespace, runs that wrote": {runs.Query{Namespace: "shop", Wrote: true}, "other/web shop/web"},
		"since a time":                 {runs.Query{Since: noon.Add(time.Minute)}, "other/db other/web shop/cart"},
		"a part of a name":             {runs.Query{Contains: "visit"}, "other/web"},
		"all of these":                 {runs.Query{Namespace: "shop", Wrote: true, Contains: "web", Since: noon.Add(time.Second)}, "other/web"},
		"a limit":                      {runs.Query{Namespace: "shop", Limit: 1}, "other/web"},
	} {
		t.Run(name, func(t *testing.T) {
			found, _ := record.Find(c.query)
			var keys []string
			for _, run := range found {
				keys = append(keys, run.Key)
			}
			if got := strings.Join(keys, " "); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}
