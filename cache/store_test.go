// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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
	slices.Sort(all)
	return strings.Join(all, " ")
}

func testStore() *store { return newStore(func(error) {}) }

// newEntry is an object as a store keeps it.
func newEntry(o object.Object) *entry {
	f, err := frameOf(o)
	if err != nil {
		panic(err)
	}
	e, err := newArchive(podContent()).entry(f)
	if err != nil {
		panic(err)
	}
	return e
}

func set(s *store, pods ...*corev1.Pod) {
	e := s.begin()
	for _, p := range pods {
		e.put(newEntry(p))
	}
	e.commit("")
}

func informerOf(s *store) SharedInformer[*corev1.Pod] {
	return SharedInformer[*corev1.Pod]{informer: &informer{store: s}}
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
	set(s, pod("a", "1", ownedBy("u1")), pod("b", "1", ownedBy("u2")), pod("c", "1"))
	want(t, "u1", names(snapshot(s).ControlledBy("ns", "u1")), "ns/a")
	want(t, "orphans", names(snapshot(s).Orphans("ns")), "ns/c")
	set(s, pod("c", "2", ownedBy("u1")), pod("a", "2"))
	want(t, "u1 after", names(snapshot(s).ControlledBy("ns", "u1")), "ns/c")
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
	informer, before := informerOf(s), snapshot(s)
	byName := NewIndex(informer, func(i Item[*corev1.Pod]) ([]string, error) { return []string{i.Key().Name}, nil })
	want(t, "in the newest state", names(byName.Find("b")), "ns/b")
	want(t, "of another value", names(byName.Find("c")), "")
	want(t, "in a snapshot that is older than the index", names(byName.In(before, "b")), "")
	for value := range byName.Values(before) {
		t.Errorf("the older snapshot has %q", value)
	}
	s2 := testStore()
	set(s2, pod("b", "1"))
	want(t, "in a snapshot of another informer", names(byName.In(snapshot(s2), "b")), "")
}

func TestAnIndexIsSharedByWhoNamesTheSameID(t *testing.T) {
	type id struct{ n int }
	type others struct{ n int }
	s := testStore()
	set(s, pod("a", "1"))
	calls := 0
	add := func(id any, value string) Index[*corev1.Pod] {
		return SharedIndex(informerOf(s), id, func(Item[*corev1.Pod]) ([]string, error) {
			calls++
			return []string{value}, nil
		})
	}
	first, second := add(id{1}, "first"), add(id{1}, "second")
	want(t, "the second handle", names(second.Find("first")), "ns/a")
	want(t, "the second function", names(first.Find("second")), "")
	if calls != 1 {
		t.Errorf("the functions were called %d times for one object", calls)
	}
	for _, other := range []any{id{2}, others{1}} {
		want(t, "another id", names(add(other, "other").Find("other")), "ns/a")
	}
	always := func(Item[*corev1.Pod]) ([]string, error) { return []string{"v"}, nil }
	if one, two := NewIndex(informerOf(s), always), NewIndex(informerOf(s), always); one == two {
		t.Error("two indexes of their own are one")
	}
}

func TestAnIndexThatIsRemovedCostsNothing(t *testing.T) {
	s := testStore()
	set(s, pod("a", "1"))
	informer, calls := informerOf(s), map[string]int{}
	add := func(value string) Index[*corev1.Pod] {
		return NewIndex(informer, func(Item[*corev1.Pod]) ([]string, error) {
			calls[value]++
			return []string{value}, nil
		})
	}
	first, second := add("first"), add("second")
	before := snapshot(s)
	first.Remove()
	first.Remove()
	set(s, pod("a", "2"), pod("b", "1"))
	want(t, "the index that was removed", names(first.Find("first")), "")
	want(t, "a snapshot from before", names(first.In(before, "first")), "ns/a")
	want(t, "the other index", names(second.Find("second")), "ns/a ns/b")
	third := add("third")
	want(t, "an index that was added after", names(third.Find("third")), "ns/a ns/b")
	want(t, "the index that was removed has", names(first.Find("third")), "")
	if len(s.added) != 3 || len(snapshot(s).state.indexes) != 3 || calls["first"] != 1 || calls["second"] != 3 {
		t.Errorf("the store has room for %d indexes, and their functions were called %v", len(s.added), calls)
	}
	second.Remove()
	third.Remove()
	for key, item := range snapshot(s).All() {
		if item.entry.index != nil {
			t.Errorf("%s stands in %v", key, *item.entry.index)
		}
	}
}

// An index that is removed while a successor takes over would otherwise stay in the successor for good.
func TestAnIndexThatIsRemovedWhileASuccessorTakesOverIsGone(t *testing.T) {
	from, to := testStore(), testStore()
	for _, s := range []*store{from, to} {
		set(s, pod("a", "1"))
	}
	always := func(*entry) ([]string, error) { return []string{"v"}, nil }
	for _, id := range []string{"stays", "goes", "again"} {
		from.addIndex(id, &addedIndex{values: always})
	}
	to.addIndex("own", &addedIndex{values: always})
	to.addIndexesOf(from)
	from.removeIndex("goes")
	from.removeIndex("again")
	newer := &addedIndex{values: always}
	from.addIndex("again", newer)
	from.mu.Lock()
	to.addIndexesLocked(from)
	from.mu.Unlock()
	is := to.current.Load()
	if have := is.numbers; len(have) != 3 || have["again"] == 0 || have["own"] == 0 || have["stays"] == 0 {
		t.Errorf("the successor has the indexes %v", have)
	}
	if to.added[is.numbers["again"]] != newer {
		t.Error("the successor has the index from before the removal")
	}
}

func TestIndexFunctionThatFailsOrPanicsIsReportedAndStopsNothing(t *testing.T) {
	var reports []string
	s := newStore(func(err error) { reports = append(reports, err.Error()) })
	bad := NewIndex(informerOf(s), func(i Item[*corev1.Pod]) ([]string, error) {
		switch i.Key().Name {
		case "fails":
			return nil, errors.New("no")
		case "panics":
			panic("oh")
		}
		return []string{"v"}, nil
	})
	set(s, pod("fails", "1"), pod("panics", "1"), pod("works", "1"))
	want(t, "index", names(bad.Find("v")), "ns/works")
	if snapshot(s).Len() != 3 || len(reports) != 2 {
		t.Errorf("%d objects, reports %q", snapshot(s).Len(), reports)
	}
}

// A server that was set back to an older state may give a version a second time: it alone
// does not say what an object is.
func TestAnObjectThatHasAnotherContentUnderTheSameVersionDiffers(t *testing.T) {
	s := testStore()
	set(s, pod("a", "1"), pod("b", "1"))
	before := snapshot(s)
	set(s, pod("b", "1", func(p *corev1.Pod) { p.Spec.NodeName = "node-1" }))
	var told []string
	for was, is := range snapshot(s).Since(before) {
		from, errWas := was.Object()
		to, errIs := is.Object()
		if errWas != nil || errIs != nil {
			t.Fatal(errWas, errIs)
		}
		told = append(told, fmt.Sprintf("%s on %q, then on %q", is.Key(), from.Spec.NodeName, to.Spec.NodeName))
	}
	if want := `ns/b on "", then on "node-1"`; !slices.Equal(told, []string{want}) {
		t.Errorf("told %q, want %q alone", told, want)
	}
}

func BenchmarkSinceOneOfAHundredThousand(b *testing.B) {
	s := testStore()
	e := s.begin()
	for i := range 100_000 {
		e.put(newEntry(pod(fmt.Sprint("p", i), "1")))
	}
	e.commit("")
	before := snapshot(s)
	set(s, pod("p1", "2"))
	now := snapshot(s)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for range now.Since(before) {
			n++
		}
		if n != 1 {
			b.Fatal(n)
		}
	}
}

func TestMatchingFiltersByLabels(t *testing.T) {
	s := testStore()
	web := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web"} }
	set(s, pod("a", "1", web), pod("b", "1"))
	selector := labels.SelectorFromSet(labels.Set{"app": "web"})
	want(t, "matching", names(Matching(snapshot(s).All(), selector)), "ns/a")
}

// The store against a map: after any sequence of changes both hold the same, every
// index says the same as a scan, and a snapshot taken on the way is what it was.
func TestStoreIsAMapWithIndexes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := testStore()
		byNode := NewIndex(informerOf(s), func(item Item[*corev1.Pod]) ([]string, error) {
			o, err := objectOf[*corev1.Pod](item.entry, false)
			if err != nil || o.Spec.NodeName == "" {
				return nil, err
			}
			return []string{o.Spec.NodeName, "any"}, nil
		})
		byName := func() Index[*corev1.Pod] {
			return NewIndex(informerOf(s), func(item Item[*corev1.Pod]) ([]string, error) { return []string{item.Key().Name}, nil })
		}
		comes := byName() // and goes
		model, archive := map[object.Key]*corev1.Pod{}, newArchive(podContent())
		older, olderModel := snapshot(s), maps.Clone(model)
		pods := rapid.IntRange(1, 200).Draw(t, "pods")
		for step := range rapid.IntRange(1, 300).Draw(t, "steps") {
			name := fmt.Sprint("p", rapid.IntRange(0, pods).Draw(t, "name"))
			namespace := rapid.SampledFrom([]string{"", "x", "xy"}).Draw(t, "namespace")
			p := pod(name, fmt.Sprint(step+1), in(namespace))
			if owner := rapid.SampledFrom([]types.UID{"", "u1", "u2"}).Draw(t, "owner"); owner != "" {
				ownedBy(owner)(p)
			}
			p.Spec.NodeName = rapid.SampledFrom([]string{"", "n1", "n2"}).Draw(t, "node")
			e := s.begin()
			var old *entry
			if rapid.Bool().Draw(t, "delete") {
				old = e.remove([]byte(namespace), []byte(name))
				delete(model, object.KeyOf(p))
			} else {
				f, err := frameOf(p)
				if err != nil {
					t.Fatal(err)
				}
				n, err := archive.entry(f)
				if err != nil {
					t.Fatal(err)
				}
				old = e.put(n)
				model[object.KeyOf(p)] = p
			}
			if old != nil {
				archive.drop(old)
			}
			e.commit(object.Version(fmt.Sprint(step + 1)))
			if rapid.IntRange(0, 20).Draw(t, "remove an index") == 0 {
				comes.Remove()
				comes = byName()
			}
			if found := len(maps.Collect(comes.Find(name))); found != countNamed(model, name) {
				t.Fatalf("%d objects are called %s, want %d", found, name, countNamed(model, name))
			}
			if step%50 == 0 {
				compare(t, byNode, older, olderModel)
				differences(t, snapshot(s), older, model, olderModel)
				differences(t, older, snapshot(s), olderModel, model)
				older, olderModel = snapshot(s), maps.Clone(model)
			}
		}
		compare(t, byNode, older, olderModel)
		compare(t, byNode, snapshot(s), model)
		differences(t, snapshot(s), Snapshot[*corev1.Pod]{}, model, nil)
		families := map[*family]int{}
		for _, item := range snapshot(s).All() {
			families[item.entry.family]++
		}
		if len(families) != len(archive.families) {
			t.Errorf("%d families in use, %d kept", len(families), len(archive.families))
		}
		for f, n := range families {
			if int(f.members) != n {
				t.Errorf("a family of %d counts %d", n, f.members)
			}
		}
	})
}

func countNamed(model map[object.Key]*corev1.Pod, name string) (n int) {
	for key := range model {
		if key.Name == name {
			n++
		}
	}
	return n
}

// differences holds what differs between two snapshots against their maps.
func differences(t *rapid.T, now, before Snapshot[*corev1.Pod], model, modelBefore map[object.Key]*corev1.Pod) {
	want := map[object.Key]bool{}
	for key, p := range model {
		want[key] = modelBefore[key] != p
	}
	for key := range modelBefore {
		want[key] = want[key] || model[key] == nil
	}
	maps.DeleteFunc(want, func(_ object.Key, differs bool) bool { return !differs })
	for was, is := range now.Since(before) {
		either := is
		if !is.Exists() {
			either = was
		}
		key := either.Key()
		if !want[key] || is != now.Get(key) || was.Exists() != (modelBefore[key] != nil) || was.Exists() && was != before.Get(key) {
			t.Fatalf("%s is told, or not as it was and is", key)
		}
		delete(want, key)
	}
	if len(want) > 0 {
		t.Fatalf("%d objects that differ are not told: %v", len(want), want)
	}
}

// compare holds a snapshot against a map of what it should be.
func compare(t *rapid.T, byNode Index[*corev1.Pod], now Snapshot[*corev1.Pod], model map[object.Key]*corev1.Pod) {
	if now.Len() != len(model) {
		t.Fatalf("%d objects, want %d", now.Len(), len(model))
	}
	want := map[string]int{}
	for key, p := range model {
		o, err := now.Get(key).Object()
		if err != nil || !equality.Semantic.DeepEqual(o, p) {
			t.Fatalf("%s: %v, %v", key, o, err)
		}
		if m := now.Get(key).Meta(); !reflect.DeepEqual(m, object.MetaOf(p)) {
			t.Fatalf("%s: %v, want %v", key, m, object.MetaOf(p))
		}
		if len(p.OwnerReferences) > 0 {
			want["owner "+string(p.OwnerReferences[0].UID)]++
		} else {
			want["orphans "+p.Namespace]++
		}
		if p.Spec.NodeName != "" {
			want["node "+p.Spec.NodeName]++
			want["node any"]++
		}
		want["namespace "+p.Namespace]++
		want["all"]++
	}
	have := map[string]int{}
	count := func(what string, items iter.Seq2[object.Key, Item[*corev1.Pod]]) {
		for key, item := range items {
			if model[key] == nil || item.Key() != key {
				t.Fatalf("%s has %s, which is not there", what, key)
			}
			have[what]++
		}
	}
	for _, uid := range []types.UID{"u1", "u2"} {
		count("owner "+string(uid), now.ControlledBy("", uid))
	}
	for _, namespace := range []string{"", "x", "xy"} {
		count("orphans "+namespace, now.Orphans(namespace))
		count("namespace "+namespace, now.Namespace(namespace))
	}
	for _, node := range []string{"n1", "n2", "any"} {
		count("node "+node, byNode.In(now, node))
	}
	count("all", now.All())
	if !maps.Equal(have, want) {
		t.Fatalf("found %v, want %v", have, want)
	}
	for value, n := range byNode.Values(now) {
		if n == 0 || n != want["node "+value] {
			t.Fatalf("index value %q is said to have %d", value, n)
		}
	}
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
		removed, _ := h.Removed(key("b"), "b")
		if closed(a) || closed(b) || closed(removed) {
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
		if again, _ := h.Removed(key("b"), "b"); closed(removed) || closed(again) {
			t.Error("b is being deleted, and is there")
		}
		w.events <- deleted(pod("b", "9"))
		if !closed(removed) {
			t.Error("b is removed")
		}
		if closed(c) {
			t.Error("who gave up was woken")
		}
		if n := len(informer.informer.gone); n != 0 {
			t.Errorf("%d waits are left", n)
		}
	})
}

// An owner may have any text as its UID, also that under which orphans are found.
func TestWhoHasAControllerOrIsElsewhereIsNoOrphanWhateverItsOwnerIsCalled(t *testing.T) {
	s := testStore()
	set(s, pod("a", "1", in("x"), ownedBy("orphans/x")), pod("b", "1", in("x")), pod("c", "1", in("y"), ownedBy("orphans/x")))
	want(t, "orphans", names(snapshot(s).Orphans("x")), "x/b")
	want(t, "orphans elsewhere", names(snapshot(s).Orphans("y")), "")
}
