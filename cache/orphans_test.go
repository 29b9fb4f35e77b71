// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestANamespaceWithoutControllersIsFullOfOrphans(t *testing.T) {
	s := testStore()
	set(s, pod("a", "1", in("x")), pod("b", "1", in("x")), pod("c", "1", in("y")))
	before := snapshot(s)
	if s.current.Load().orphans.has("x") {
		t.Error("the orphans of a namespace without controllers are kept twice")
	}
	want(t, "without controllers", names(before.Orphans("x")), "x/a x/b")

	set(s, pod("d", "1", in("x"), ownedBy("rs")), pod("b", "2", in("x"), ownedBy("rs")))
	want(t, "with a controller", names(snapshot(s).Orphans("x")), "x/a")
	want(t, "elsewhere", names(snapshot(s).Orphans("y")), "y/c")
	want(t, "an older state", names(before.Orphans("x")), "x/a x/b")

	set(s, pod("a", "2", in("x"), ownedBy("rs")))
	want(t, "without orphans", names(snapshot(s).Orphans("x")), "")
	set(s, pod("b", "3", in("x")))
	want(t, "with one that was released", names(snapshot(s).Orphans("x")), "x/b")

	edit := s.begin()
	for _, name := range []string{"a", "b", "d"} {
		edit.remove([]byte("x"), []byte(name))
	}
	edit.commit("")
	want(t, "an empty namespace", names(snapshot(s).Orphans("x")), "")
	if s.current.Load().orphans.has("x") {
		t.Error("the orphans of a namespace that is gone are kept")
	}
}

// Whatever comes and goes, in few or many edits, the orphans are those that a look at each object finds.
func TestOrphansAreThoseThatHaveNoController(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	s := testStore()
	spaces := []string{"", "x", "y"}
	for range 400 {
		edit := s.begin()
		for range 1 + random.IntN(20) {
			space, name := spaces[random.IntN(len(spaces))], fmt.Sprint("p", random.IntN(12))
			old := edit.get([]byte(space), []byte(name))
			switch random.IntN(5) {
			case 0, 1:
				edit.put(newEntry(pod(name, "1", in(space))))
			case 2:
				edit.put(newEntry(pod(name, "1", in(space), ownedBy("rs"))))
			case 3:
				if old != nil {
					edit.rewrite(old, &entry{family: old.family, name: old.name, text: old.text, form: old.form, packing: old.packing})
				}
			default:
				edit.remove([]byte(space), []byte(name))
			}
		}
		edit.commit("")
		for _, space := range spaces {
			got, all := map[string]bool{}, 0
			for key, item := range snapshot(s).Orphans(space) {
				got[key.Name] = true
				if item.entry != snapshot(s).Get(key).entry {
					t.Fatalf("seed %d: %s is not as the store has it", seed, key)
				}
			}
			s.current.Load().spaces.find(space).all(func(e *entry) bool {
				if !e.family.controlled {
					all++
					if key := e.key(); !got[key.Name] {
						t.Fatalf("seed %d: %s is an orphan and was not found", seed, key)
					}
				}
				return true
			})
			if len(got) != all {
				t.Fatalf("seed %d: %d orphans in %q, want %d", seed, len(got), space, all)
			}
		}
	}
}
