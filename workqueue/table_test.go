// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"testing"

	"pgregory.net/rapid"
)

// A table finds what a map finds, while it grows and after, whatever the hashes.
func TestTableFindsWhatAMapFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := newTable[int]()
		model := map[int]*entry[int]{}
		spread := rapid.SampledFrom([]uint64{1, 2, 64, 1 << 40}).Draw(t, "different hashes")
		hash := func(key int) uint64 { return table.hash(key) % spread }
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			key := rapid.IntRange(0, 150).Draw(t, "key")
			e := table.get(key, hash(key))
			if e != model[key] {
				t.Fatalf("key %d: found %v, want %v", key, e, model[key])
			}
			if e != nil && rapid.Bool().Draw(t, "remove") {
				table.remove(e)
				delete(model, key)
			}
			if e == nil {
				e = &entry[int]{key: key, hash: hash(key)}
				table.insert(e)
				model[key] = e
			}
			if table.n != len(model) {
				t.Fatalf("%d entries, want %d", table.n, len(model))
			}
		}
		for key, e := range model {
			if table.get(key, hash(key)) != e {
				t.Fatalf("key %d is not found at the end", key)
			}
		}
	})
}

// No insert moves more than two chains, and the table is never twice as full as it
// has chains.
func TestTableGrowsStepByStep(t *testing.T) {
	table := newTable[int]()
	for key := range 10_000 {
		before := table.moved
		table.insert(&entry[int]{key: key, hash: table.hash(key)})
		if table.moved > before+2 {
			t.Fatalf("insert %d moved %d chains", key, table.moved-before)
		}
		if table.n > 2*len(table.chains) {
			t.Fatalf("%d entries in %d chains", table.n, len(table.chains))
		}
	}
	for key := range 10_000 {
		if table.get(key, table.hash(key)) == nil {
			t.Fatalf("key %d is not found", key)
		}
	}
	table.trim()
	if table.get(1, table.hash(1)) != nil || len(table.chains) != minChains {
		t.Error("a trimmed table is not as a new one")
	}
}

// A worker that calls Done within the body of Items ends its run and no other.
func TestDoneWithinItemsIsNoSecondDone(t *testing.T) {
	q := New(Options[string]{})
	defer q.ShutDown()
	q.Add("a")
	q.Add("b")
	seen := ""
	for item := range q.Items() {
		seen += item.Key
		q.Done(item.Key)
		if len(seen) == 1 {
			q.Add("a") // has the entry that "a" has given back
			first, _ := q.Get()
			if first.Key != "b" {
				t.Fatalf("%q was handed out, want b", first.Key)
			}
		}
		if len(seen) == 2 {
			break
		}
	}
	if s := q.Stats(); seen != "aa" || s.Processing != 1 {
		t.Errorf("handed out %q with %d being processed, want aa and b alone", seen, s.Processing)
	}
}
