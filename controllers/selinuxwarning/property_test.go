// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selinuxwarning

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/object"
)

// world is what the tracker has heard of, in plain lists.
type world struct {
	pods   map[object.Key]record
	mounts map[string]bool
}

// conflicts compares each Pod with each other one.
func (w *world) conflicts() (found []conflict) {
	for _, a := range w.pods {
		for _, b := range w.pods {
			for _, x := range a.uses {
				for _, y := range b.uses {
					if a.pod != b.pod && x.medium == y.medium && (x.medium.driver == "" || w.mounts[x.medium.driver]) {
						found = append(found, between(a.pod, x.trait, b.pod, y.trait)...)
					}
				}
			}
		}
	}
	return inOrder(found)
}

// drawUsage draws a usage with each medium once.
func drawUsage(t *rapid.T) (u usage) {
	media := []medium{always("fc"), {"v1", "a.example"}, {"v2", "a.example"}, {"v3", "b.example"}}
	traits := []trait{{"", recursive}, {":::s0", mountOption}, {":::s1", mountOption}, {"user:::s0", mountOption}, {"other:::s0", mountOption}}
	for _, m := range media {
		if rapid.Bool().Draw(t, "uses") {
			u.uses = append(u.uses, use{m, rapid.SampledFrom(traits).Draw(t, "trait")})
		}
	}
	return u
}

// After each step of a history, the conflicts are those that a comparison of all Pods finds. The
// news of the step are those that were not there before, and none that are not there. A Pod that
// changes its use may report a conflict once more, which both ways of use have.
func TestConflictsAreThoseThatAComparisonOfAllPodsFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{pods: map[object.Key]record{}, mounts: map[string]bool{}}
		tr := newTracker()
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			before := w.conflicts()
			pod := podID{
				key: object.Key{Namespace: "ns", Name: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "pod")},
				uid: types.UID(rapid.SampledFrom([]string{"1", "2"}).Draw(t, "uid")),
			}
			var said []conflict
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				delete(w.pods, pod.key)
				tr.remove(pod.key)
			case 1:
				driver, mounts := rapid.SampledFrom([]string{"a.example", "b.example"}).Draw(t, "driver"), rapid.Bool().Draw(t, "mounts")
				w.mounts[driver] = mounts
				said = tr.setDriver(driver, mounts)
			default:
				u := drawUsage(t)
				w.pods[pod.key] = record{pod, u}
				said = tr.set(pod, u).conflicts
			}
			check(t, tr, w, before, said)
		}
		for key := range maps.Clone(tr.pods) {
			tr.remove(key)
		}
		if len(tr.users)+len(tr.pods) != 0 {
			t.Errorf("without Pods, the tracker keeps %v and %v", tr.users, tr.pods)
		}
	})
}

// check compares a tracker with the world after a step that said what is new.
func check(t *rapid.T, tr *tracker, w *world, before, said []conflict) {
	want := w.conflicts()
	if got := tr.all(); !slices.Equal(got, want) {
		t.Fatalf("the conflicts are\n%q\nwant\n%q", notes(got), notes(want))
	}
	for _, c := range want {
		if !slices.Contains(before, c) && !slices.Contains(said, c) {
			t.Fatalf("the step has not said %q", notes([]conflict{c}))
		}
	}
	for _, c := range said {
		if !slices.Contains(want, c) || !slices.Contains(said, c.turned()) {
			t.Fatalf("the step has said %q, which is not so, or not to both", notes([]conflict{c}))
		}
	}
}
