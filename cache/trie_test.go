// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// numbered is an element whose hash a test chooses.
type numbered struct {
	name string
	bad  uint64
}

func (n *numbered) names() (a, b []byte)    { return []byte(n.name), nil }
func (n *numbered) called(a, _ []byte) bool { return n.name == string(a) }
func (n *numbered) hash() uint64            { return n.bad }

// differs checks what is said to differ between two states against their models.
func differs(t *rapid.T, now, before trie[*numbered], model, modelBefore map[string]*numbered) {
	want := map[string][2]*numbered{}
	for name, n := range model {
		if modelBefore[name] != n {
			want[name] = [2]*numbered{modelBefore[name], n}
		}
	}
	for name, n := range modelBefore {
		if model[name] == nil {
			want[name] = [2]*numbered{n, nil}
		}
	}
	told := 0
	now.since(before, func(was, is *numbered) bool {
		told++
		either := is
		if either == nil {
			either = was
		}
		if want[either.name] != [2]*numbered{was, is} {
			t.Fatalf("%s was %v and is %v, want %v", either.name, was, is, want[either.name])
		}
		return true
	})
	if told != len(want) {
		t.Fatalf("%d differ, want %d", told, len(want))
	}
	now.since(before, func(_, _ *numbered) bool { told--; return false })
	if len(want) > 0 && told != len(want)-1 {
		t.Fatal("it goes on when told to stop")
	}
}

// The trie against a map, with hashes that meet in few bits, in many, and in all.
func TestTrieIsAMapHoweverHashesMeet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hashes := rapid.SampledFrom([]func(int) uint64{
			func(i int) uint64 { return uint64(i) * 0x9e3779b97f4a7c15 },
			func(i int) uint64 { return uint64(i%3) << 60 },
			func(i int) uint64 { return uint64(i) << 56 },
			func(int) uint64 { return 42 },
		}).Draw(t, "hashes")
		var now, before trie[*numbered]
		model, modelBefore := map[string]*numbered{}, map[string]*numbered{}
		check := func(have trie[*numbered], want map[string]*numbered) {
			if have.len != len(want) {
				t.Fatalf("len %d, want %d", have.len, len(want))
			}
			for name, n := range want {
				if got, ok := have.get(n.bad, []byte(name), nil); !ok || got != n {
					t.Fatalf("%s is %v, want %v", name, got, n)
				}
			}
			seen := 0
			have.all(func(n *numbered) bool {
				if want[n.name] != n {
					t.Fatalf("%v is in the trie", n)
				}
				seen++
				return true
			})
			if seen != len(want) {
				t.Fatalf("walked over %d, want %d", seen, len(want))
			}
		}
		edit := uint64(1)
		for range rapid.IntRange(0, 600).Draw(t, "steps") {
			i := rapid.IntRange(0, 150).Draw(t, "element")
			n := &numbered{name: string(rune('a' + i)), bad: hashes(i)}
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			default:
				old, had := now.put(edit, n, []byte(n.name), nil)
				if had != (model[n.name] != nil) || old != model[n.name] {
					t.Fatalf("put replaced %v, want %v", old, model[n.name])
				}
				model[n.name] = n
			case 0, 1, 2, 3:
				old, had := now.remove(edit, n.bad, []byte(n.name), nil)
				if had != (model[n.name] != nil) || old != model[n.name] {
					t.Fatalf("remove took %v, want %v", old, model[n.name])
				}
				delete(model, n.name)
			case 4:
				check(before, modelBefore)
				differs(t, now, before, model, modelBefore)
				differs(t, before, now, modelBefore, model)
				before, modelBefore = now, maps.Clone(model)
				edit++ // what was published is not changed any more
			}
		}
		check(before, modelBefore)
		check(now, model)
		for name, n := range model {
			now.remove(edit, n.bad, []byte(name), nil)
		}
		if now.root != nil || now.len != 0 {
			t.Fatalf("an empty trie has %d elements and the root %v", now.len, now.root)
		}
	})
}
