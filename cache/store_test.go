// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/object"
)

func names[T object.Object](items func(func(object.Key, Item[T]) bool)) string {
	var all []string
	for key := range items {
		all = append(all, key.String())
	}
	return strings.Join(all, " ")
}

func testStore() *store { return newStore(func(error) {}) }

func set(s *store, pods ...*corev1.Pod) {
	e := s.begin()
	for _, p := range pods {
		e.put(newEntry(p))
	}
	e.commit("")
}

func snapshot(s *store) Snapshot[*corev1.Pod] { return Snapshot[*corev1.Pod]{s.current.Load()} }

func in(namespace string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Namespace = namespace } }

func TestNamespaceReadsItsOwnObjectsOnly(t *testing.T) {
	s := testStore()
	set(s, pod("a", "1", in("x")), pod("b", "1", in("x")), pod("a", "1", in("xy")), pod("a", "1", in("")))
	want(t, "x", names(snapshot(s).Namespace("x")), "x/a x/b")
	want(t, "cluster scope", names(snapshot(s).Namespace("")), "a")
	want(t, "none", names(snapshot(s).Namespace("z")), "")
}

func TestControllerIndexFindsOwnedAndOrphans(t *testing.T) {
	s := testStore()
	if err := s.addIndex(controllerIndex, byController); err != nil {
		t.Fatal(err)
	}
	set(s, pod("a", "1", ownedBy("u1")), pod("b", "1", ownedBy("u2")), pod("c", "1"))
	want(t, "u1", names(snapshot(s).ControlledBy("u1")), "ns/a")
	want(t, "orphans", names(snapshot(s).Orphans("ns")), "ns/c")
	set(s, pod("c", "2", ownedBy("u1")), pod("a", "2"))
	want(t, "u1 after", names(snapshot(s).ControlledBy("u1")), "ns/c")
	want(t, "orphans after", names(snapshot(s).Orphans("ns")), "ns/a")
}

func TestSnapshotDoesNotChange(t *testing.T) {
	s := testStore()
	set(s, pod("a", "1"))
	before := snapshot(s)
	set(s, pod("a", "2"), pod("b", "1"))
	if got := before.Get(key("a")).Meta().Version; got != "1" || before.Len() != 1 {
		t.Errorf("the snapshot moved to %s with %d objects", got, before.Len())
	}
}

func TestIndexAddedLateCoversWhatIsThere(t *testing.T) {
	s := testStore()
	set(s, pod("a", "1"), pod("b", "1"))
	byName := func(e *entry) ([]string, error) { return []string{e.meta.Name}, nil }
	if err := s.addIndex("name", byName); err != nil {
		t.Fatal(err)
	}
	want(t, "index", names(snapshot(s).Index("name", "b")), "ns/b")
	if err := s.addIndex("name", byName); err == nil {
		t.Error("a second index of one name was not refused")
	}
}

func TestIndexFunctionThatFailsOrPanicsIsReportedAndStopsNothing(t *testing.T) {
	var reports []string
	s := newStore(func(err error) { reports = append(reports, err.Error()) })
	err := s.addIndex("bad", func(e *entry) ([]string, error) {
		switch e.meta.Name {
		case "fails":
			return nil, errors.New("no")
		case "panics":
			panic("oh")
		case "zero":
			return []string{"a\x00b"}, nil
		}
		return []string{"v"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	set(s, pod("fails", "1"), pod("panics", "1"), pod("zero", "1"), pod("works", "1"))
	want(t, "index", names(snapshot(s).Index("bad", "v")), "ns/works")
	if snapshot(s).Len() != 4 || len(reports) != 3 {
		t.Errorf("%d objects, reports %q", snapshot(s).Len(), reports)
	}
}

func TestMatchingFiltersByLabels(t *testing.T) {
	s := testStore()
	web := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web"} }
	set(s, pod("a", "1", web), pod("b", "1"))
	selector := labels.SelectorFromSet(labels.Set{"app": "web"})
	want(t, "matching", names(Matching(snapshot(s).All(), selector)), "ns/a")
}

// The store against a map: after any sequence of changes both hold the same, and
// every index says the same as a scan.
func TestStoreIsAMapWithIndexes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := testStore()
		if err := s.addIndex(controllerIndex, byController); err != nil {
			t.Fatal(err)
		}
		model := map[object.Key]*corev1.Pod{}
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c", "ab"}).Draw(t, "name")
			namespace := rapid.SampledFrom([]string{"", "x", "xy"}).Draw(t, "namespace")
			p := pod(name, fmt.Sprint(step+1), in(namespace))
			if owner := rapid.SampledFrom([]types.UID{"", "u1", "u2"}).Draw(t, "owner"); owner != "" {
				ownedBy(owner)(p)
			}
			e := s.begin()
			if rapid.Bool().Draw(t, "delete") {
				e.remove(object.KeyOf(p))
				delete(model, object.KeyOf(p))
			} else {
				e.put(newEntry(p))
				model[object.KeyOf(p)] = p
			}
			e.commit(object.Version(fmt.Sprint(step + 1)))

			now := snapshot(s)
			if now.Len() != len(model) {
				t.Fatalf("%d objects, want %d", now.Len(), len(model))
			}
			owned := map[string]int{}
			for key, p := range model {
				if o, err := now.Get(key).Object(); err != nil || o != p {
					t.Fatalf("%s: %v, %v", key, o, err)
				}
				if len(p.OwnerReferences) > 0 {
					owned[string(p.OwnerReferences[0].UID)]++
				} else {
					owned["orphans/"+p.Namespace]++
				}
			}
			for _, value := range []string{"u1", "u2", "orphans/", "orphans/x", "orphans/xy"} {
				n := 0
				for range now.Index(controllerIndex, value) {
					n++
				}
				if n != owned[value] {
					t.Fatalf("index %q has %d, want %d", value, n, owned[value])
				}
			}
		}
	})
}

// Readers and the writer at once, for the race detector.
func TestReadersDoNotStopTheWriter(t *testing.T) {
	s := testStore()
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				now := snapshot(s)
				n := 0
				for range now.All() {
					n++
				}
				if n != now.Len() {
					t.Errorf("a snapshot of %d objects lists %d", now.Len(), n)
					return
				}
			}
		})
	}
	for i := range 3000 {
		set(s, pod(fmt.Sprint("p", i%500), fmt.Sprint(i+1)))
	}
	close(done)
	readers.Wait()
}

func TestObservedWakesAtTheVersionAndNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(allSent("99"))
		_, informer := newTestInformer(t, w)
		defer start(t, informer)()
		synctest.Wait()
		open := func(c <-chan struct{}) bool {
			select {
			case <-c:
				return false
			default:
				return true
			}
		}
		past, _ := informer.Observed("99")
		later, _ := informer.Observed("101")
		never, giveUp := informer.Observed("1000")
		giveUp()
		if open(past) || !open(later) {
			t.Error("99 has been seen, 101 has not")
		}
		w.events <- added(pod("a", "100"))
		synctest.Wait()
		if !open(later) {
			t.Error("101 was said to be seen at 100")
		}
		w.events <- bookmark("101")
		synctest.Wait()
		if open(later) {
			t.Error("101 has been seen in a bookmark")
		}
		w.events <- bookmark("1000")
		synctest.Wait()
		if !open(never) {
			t.Error("who gave up was woken")
		}
	})
}

func TestGoneWakesWhenTheObjectGoesOrBeginsTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(added(pod("a", "1")), added(pod("b", "1")), added(pod("c", "1")), allSent("5"))
		_, informer := newTestInformer(t, w)
		defer start(t, informer)()
		synctest.Wait()
		h := informer.Handle()
		closed := func(c <-chan struct{}) bool {
			synctest.Wait()
			select {
			case <-c:
				return true
			default:
				return false
			}
		}
		if c, _ := h.Gone(key("none"), ""); !closed(c) {
			t.Error("what is not there is gone")
		}
		if c, _ := h.Gone(key("a"), "older"); !closed(c) {
			t.Error("another object has its name, so it is gone")
		}
		a, _ := h.Gone(key("a"), "a")
		b, _ := h.Gone(key("b"), "")
		c, giveUp := h.Gone(key("c"), "c")
		giveUp()
		if closed(a) || closed(b) {
			t.Error("they are there")
		}
		w.events <- deleted(pod("a", "6"))
		w.events <- modified(pod("b", "7", func(p *corev1.Pod) {
			now := p.CreationTimestamp
			now.Time = time.Now()
			p.DeletionTimestamp = &now
		}))
		w.events <- deleted(pod("c", "8"))
		if !closed(a) || !closed(b) {
			t.Error("a has gone and b has begun to")
		}
		if closed(c) {
			t.Error("who gave up was woken")
		}
		if n := len(informer.informer.gone); n != 0 {
			t.Errorf("%d waits are left", n)
		}
	})
}
