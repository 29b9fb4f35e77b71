// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	operators "k8s.io/apimachinery/pkg/selection"

	"github.com/setpoint-io/setpoint/object"
)

func labelled(namespace string, has map[string]string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Namespace, p.Labels = namespace, has }
}

func selectorOf(t testing.TB, text string) labels.Selector {
	t.Helper()
	s, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// compared is what a selector matches, found without an index.
func compared(s Snapshot[*corev1.Pod], namespace string, selector labels.Selector) string {
	if namespace == "" {
		return names(Matching(s.All(), selector))
	}
	return names(Matching(s.Namespace(namespace), selector))
}

// apps returns Pods, each with a label that ten have.
func apps(n int) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = pod(fmt.Sprint("p", i), "1", labelled("ns", map[string]string{"app": fmt.Sprint("a", i/10), "tier": "web"}))
	}
	return pods
}

func TestSelectorsFindByIndexWhatComparingFinds(t *testing.T) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, 0))
	s := testStore()
	spaces := []string{"x", "y", "z"}
	change := func(n int) {
		edit := s.begin()
		for range n {
			space, name := spaces[random.IntN(len(spaces))], fmt.Sprint("p", random.IntN(700))
			if random.IntN(8) == 0 {
				edit.remove([]byte(space), []byte(name))
				continue
			}
			has := map[string]string{"app": fmt.Sprint("a", random.IntN(60)), "tier": fmt.Sprint("t", random.IntN(3))}
			if random.IntN(5) == 0 {
				delete(has, "app")
			}
			edit.put(newEntry(pod(name, "1", labelled(space, has))))
		}
		edit.commit("")
	}
	change(4000)
	selectors := []labels.Selector{}
	for _, text := range []string{"app=a7", "app=a7,tier=t1", "app in (a1,a2,a2)", "app=none", "tier=t2", "app!=a1", "app", "!app", "app=a9,tier!=t0", "tier in (t0),app=a3"} {
		selectors = append(selectors, selectorOf(t, text))
	}
	old := []Snapshot[*corev1.Pod]{snapshot(s)}
	for range 12 {
		change(1 + random.IntN(40))
		old = append(old, snapshot(s))
		for _, of := range []Snapshot[*corev1.Pod]{snapshot(s), old[random.IntN(len(old))]} {
			for _, selector := range selectors {
				for _, namespace := range []string{"", "x"} {
					want(t, fmt.Sprintf("seed %d, %q in %q", seed, selector, namespace), names(of.Select(namespace, selector)), compared(of, namespace, selector))
				}
			}
		}
	}
	x := s.current.Load().labels
	if x.byKey["app"] == nil {
		t.Errorf("there are indexes of %v, and none of app", x.byKey)
	}
	x.stop()
}

func TestAnIndexOfALabelIsMadeForSelectorsThatAreUsedOftenAndDroppedAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testStore()
		set(s, apps(2000)...)
		x, few := s.current.Load().labels, selectorOf(t, "app=a5")
		for range labelIndexAfter - 1 {
			names(snapshot(s).Select("", few))
		}
		if len(x.byKey) > 0 {
			t.Error("a selector that was used seldom has an index")
		}
		names(snapshot(s).Select("", few))
		if x.byKey["app"] == nil {
			t.Fatal("a selector that is used often has no index")
		}
		candidates, ok := x.candidates(s.current.Load(), "", few)
		if n := candidates[0].len; !ok || len(candidates) != 1 || n != 10 {
			t.Errorf("%d candidates by the index, want 10", n)
		}
		// An index of a label that all objects have alike is made once, and not used.
		for range 3 * labelIndexAfter {
			names(snapshot(s).Select("", selectorOf(t, "tier=web")))
		}
		if _, ok := x.candidates(s.current.Load(), "", selectorOf(t, "tier=web")); ok {
			t.Error("an index that leaves all objects is used")
		}
		time.Sleep(2 * labelIndexIdle)
		names(snapshot(s).Select("", few)) // one use, and then none
		time.Sleep(4 * labelIndexIdle)
		if x.mu.Lock(); len(x.byKey) > 0 || x.idle != nil {
			t.Errorf("indexes of %v stay without use", x.byKey)
		}
		x.mu.Unlock()
		x.stop()
		for range 2 * labelIndexAfter {
			names(snapshot(s).Select("", few))
		}
		if len(x.byKey) > 0 {
			t.Error("an informer that has stopped makes an index")
		}
	})
}

func TestReadersSelectByIndexWhileTheStoreIsWritten(t *testing.T) {
	s := testStore()
	set(s, apps(2000)...)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			selector := selectorOf(t, fmt.Sprintf("app=a%d", i))
			for range 12 {
				of := snapshot(s)
				want(t, "selected", names(of.Select("", selector)), compared(of, "", selector))
			}
		})
	}
	all.Go(func() {
		for i := range 200 {
			set(s, pod(fmt.Sprint("p", i), "2", labelled("ns", map[string]string{"app": fmt.Sprint("a", i%7)})))
		}
	})
	all.Wait()
	s.current.Load().labels.stop()
}

// BenchmarkSelectTenOfMany selects ten Pods of 20,000: by comparing all, and by the index.
func BenchmarkSelectTenOfMany(b *testing.B) {
	s := testStore()
	set(s, apps(20_000)...)
	selector := selectorOf(b, "app=a500")
	state := Snapshot[*corev1.Pod]{s.current.Load()}
	count := func(b *testing.B, of Snapshot[*corev1.Pod]) {
		for b.Loop() {
			n := 0
			for range of.Select("", selector) {
				n++
			}
			if n != 10 {
				b.Fatal(n)
			}
		}
	}
	b.Run("compared", func(b *testing.B) {
		plain := *state.state
		plain.labels = nil
		count(b, Snapshot[*corev1.Pod]{&plain})
	})
	b.Run("index", func(b *testing.B) { count(b, state) })
	b.Run("index-and-a-change", func(b *testing.B) {
		keys := slices.Collect(func(yield func(object.Key) bool) {
			for key := range state.All() {
				if !yield(key) {
					return
				}
			}
		})
		i := 0
		for b.Loop() {
			i++
			edit := s.begin()
			edit.put(newEntry(pod(keys[i%len(keys)].Name, "2", labelled("ns", map[string]string{"app": "other"}))))
			edit.commit("")
			for range snapshot(s).Select("", selector) {
			}
		}
	})
}

// API servers accept a selector that names a value twice.
func TestAValueThatASelectorNamesTwiceCountsOnce(t *testing.T) {
	twice, err := labels.NewRequirement("app", operators.In, []string{"a5", "a7", "a5"})
	if err != nil {
		t.Fatal(err)
	}
	selector := labels.NewSelector().Add(*twice)
	s := testStore()
	set(s, apps(2*labelIndexFrom)...)
	for range labelIndexAfter + 1 {
		want(t, "selected", names(snapshot(s).Select("", selector)), compared(snapshot(s), "", selector))
	}
	s.current.Load().labels.stop()
}
