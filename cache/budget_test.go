// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/object"
)

// budgeted is an informer of Pods with a budget, which a test writes to.
type budgeted struct {
	SharedInformer[*corev1.Pod]
	t       testing.TB
	decodes atomic.Int64
	version int
}

func newBudgeted(t testing.TB, budget *Budget) *budgeted {
	t.Helper()
	b := &budgeted{t: t}
	c := podContent()
	c.budget = budget
	c.new = func() object.Object { b.decodes.Add(1); return new(corev1.Pod) }
	i := newInformer("pods", nil, c, slog.New(slog.DiscardHandler))
	i.isSynced.Store(true)
	b.SharedInformer = SharedInformer[*corev1.Pod]{informer: i}
	t.Cleanup(c.stop)
	return b
}

// write stores a new state of the Pod of a number. Its node is its version.
func (b *budgeted) write(number int) {
	b.version++
	p := realPod(number)
	p.ResourceVersion, p.Spec.NodeName = strconv.Itoa(b.version), strconv.Itoa(b.version)
	f, err := frameOf(p)
	if err == nil {
		err = b.informer.put(f, object.Version(p.ResourceVersion))
		b.informer.flush()
	}
	if err != nil {
		b.t.Error(err)
	}
}

func (b *budgeted) remove(number int) {
	f, err := frameOf(realPod(number))
	if err == nil {
		b.version++
		err = b.informer.remove(f, object.Version(strconv.Itoa(b.version)))
		b.informer.flush()
	}
	if err != nil {
		b.t.Error(err)
	}
}

// list reads all Pods, drops them and what was decoded last, and collects garbage. It returns how
// many were decoded.
//
//go:noinline
func (b *budgeted) list() int {
	b.t.Helper()
	before := b.decodes.Load()
	if all, err := b.List(nil); err != nil || len(all) != b.Snapshot().Len() {
		b.t.Fatalf("have %d of %d Pods, %v", len(all), b.Snapshot().Len(), err)
	}
	b.collect()
	return int(b.decodes.Load() - before)
}

func (b *budgeted) collect() {
	b.informer.content.recent.drop()
	runtime.GC()
}

// get reads one Pod, and refers to it weakly.
//
//go:noinline
func (b *budgeted) get(number int) weak.Pointer[corev1.Pod] {
	b.t.Helper()
	p, err := b.Get(object.KeyOf(realPod(number)))
	if err != nil {
		b.t.Fatal(err)
	}
	return weak.Make(p)
}

func TestAListWithinTheBudgetIsDecodedOnce(t *testing.T) {
	for name, budget := range map[string]struct {
		bytes   int64
		decodes int // of the second list
	}{"enough": {10 << 20, 0}, "none": {0, 100}, "less than none": {-1, 100}} {
		t.Run(name, func(t *testing.T) {
			b := newBudgeted(t, NewBudget(budget.bytes))
			for n := range 100 {
				b.write(n)
			}
			if got := b.list(); got != 100 {
				t.Errorf("the first list decoded %d Pods, want 100", got)
			}
			if got := b.list(); got != budget.decodes {
				t.Errorf("the second list decoded %d Pods, want %d", got, budget.decodes)
			}
		})
	}
}

func TestAListThatDoesNotFitLeavesAPartOfItDecoded(t *testing.T) {
	budget := NewBudget(400_000)
	b := newBudgeted(t, budget)
	for n := range 200 {
		b.write(n)
	}
	b.list()
	held := budget.Status()
	if held.Objects < 10 || held.Objects > 190 || held.Bytes > held.Limit {
		t.Fatalf("the budget should have room for a part of the Pods: %+v", held)
	}
	for range 5 {
		if got, most := b.list(), 200-held.Objects*9/10; got > most {
			t.Errorf("a list decoded %d Pods, want at most %d: the budget has %d", got, most, held.Objects)
		}
	}
	if got := budget.Status(); got.Decodes != uint64(b.decodes.Load()) {
		t.Errorf("the budget counted %d decodes, want %d", got.Decodes, b.decodes.Load())
	}
}

func TestObjectsThatAreReadReplaceThoseThatAreNot(t *testing.T) {
	b := newBudgeted(t, NewBudget(100_000))
	for n := range 200 {
		b.write(n)
	}
	b.list()
	hot := func() int {
		before := b.decodes.Load()
		for n := range 5 {
			b.get(100 + n)
		}
		b.collect()
		return int(b.decodes.Load() - before)
	}
	for range 50 {
		hot()
	}
	if got := hot(); got != 0 {
		t.Errorf("%d of 5 Pods that are read all the time are decoded each time", got)
	}
}

func TestAnObjectThatIsReadOnceTakesNothingOfTheBudget(t *testing.T) {
	budget := NewBudget(10 << 20)
	b := newBudgeted(t, budget)
	b.write(1)
	once := b.get(1)
	b.collect()
	if got := budget.Status(); got.Objects != 0 || once.Value() != nil {
		t.Errorf("the budget has a Pod that was read once: %+v", got)
	}
	again := b.get(1)
	b.collect()
	if got := budget.Status(); got.Objects != 1 || again.Value() == nil {
		t.Errorf("the budget has no Pod that was read twice: %+v", got)
	}
}

func TestAStateThatIsReplacedLeavesTheBudget(t *testing.T) {
	for name, change := range map[string]func(*budgeted){
		"by a change":   func(b *budgeted) { b.write(1) },
		"by a deletion": func(b *budgeted) { b.remove(1) },
		"by one of its name that cannot be used": func(b *budgeted) {
			other := realPod(1)
			other.UID = "another"
			f, err := frameOf(other)
			if err != nil {
				b.t.Fatal(err)
			}
			f.fault = errors.New("no")
			if err := b.informer.put(f, "9"); err != nil {
				b.t.Fatal(err)
			}
		},
		"by a list": func(b *budgeted) {
			b.informer.begin(false)
			b.informer.whole("9")
		},
		"by the end of the informer": func(b *budgeted) { b.informer.content.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			budget := NewBudget(10 << 20)
			b := newBudgeted(t, budget)
			b.write(1)
			b.list()
			was := b.get(1)
			before := b.Snapshot()
			if got := budget.Status(); got.Objects != 1 || was.Value() == nil {
				t.Fatalf("the Pod should be in the budget: %+v", got)
			}
			change(b)
			// A reader of an older state does not bring it back.
			for _, item := range before.All() {
				if _, err := item.Object(); err != nil {
					t.Error(err)
				}
			}
			if _, err := before.List("", nil); err != nil {
				t.Error(err)
			}
			if got := budget.Status(); got.Objects != 0 || got.Bytes != 0 {
				t.Errorf("the budget has a state that was replaced: %+v", got)
			}
			b.collect()
			if was.Value() != nil {
				t.Error("the state that was replaced is in memory still")
			}
		})
	}
}

func TestObjectsThatAreNotReadForLongLeaveTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := NewBudget(10 << 20)
		b := newBudgeted(t, budget)
		for n := range 10 {
			b.write(n)
		}
		b.list()
		for range 3 {
			time.Sleep(sweepEvery + time.Second)
			b.get(1)
			synctest.Wait()
		}
		if got := budget.Status(); got.Objects != 1 {
			t.Errorf("the budget should have the one Pod that is read: %+v", got)
		}
		time.Sleep(2*sweepEvery + time.Second)
		synctest.Wait()
		if got := budget.Status(); got.Objects != 0 || got.Bytes != 0 {
			t.Errorf("the budget has a Pod that is not read: %+v", got)
		}
		b.list() // it works again
		if got := budget.Status(); got.Objects != 10 {
			t.Errorf("the budget should have all Pods: %+v", got)
		}
	})
}

func TestInformersShareABudget(t *testing.T) {
	budget := NewBudget(10 << 20)
	one, other := newBudgeted(t, budget), newBudgeted(t, budget)
	one.write(1)
	other.write(1)
	one.list()
	other.list()
	if got := budget.Status(); got.Objects != 2 {
		t.Errorf("want the Pods of both: %+v", got)
	}
	one.informer.content.stop()
	if got := budget.Status(); got.Objects != 1 {
		t.Errorf("want the Pod of the informer that has not stopped: %+v", got)
	}
}

// Whatever readers and writers do at the same time, a reader gets one of the states that the object
// had meanwhile, whole; and the budget has no more than its limit, and nothing but newest states.
func TestReadersGetWholeStatesAndTheBudgetHoldsItsLimit(t *testing.T) {
	const limit, pods, steps = 60_000, 20, 2_000
	budget := NewBudget(limit)
	b := newBudgeted(t, budget)
	for n := range pods {
		b.write(n)
	}
	var begun, ended [pods]atomic.Int64 // the version that is being written, and the one that is
	for n := range pods {
		begun[n].Store(int64(n + 1))
		ended[n].Store(int64(n + 1))
	}
	seed := rand.Uint64()
	var done atomic.Bool
	var readers sync.WaitGroup
	for r := range uint64(4) {
		readers.Go(func() {
			random := rand.New(rand.NewPCG(seed, r))
			for !done.Load() {
				n := random.IntN(pods)
				oldest := ended[n].Load()
				var p *corev1.Pod
				var err error
				own := false
				if random.IntN(4) == 0 {
					all, failed := b.Snapshot().List("", nil)
					for _, o := range all {
						if o.Name == realPod(n).Name {
							p = o
						}
					}
					err = failed
				} else if random.IntN(2) == 0 {
					p, err = b.Get(object.KeyOf(realPod(n)))
				} else {
					own = true
					p, err = b.Snapshot().Get(object.KeyOf(realPod(n))).Copy()
				}
				if err != nil {
					t.Error(err)
					return
				}
				newest := begun[n].Load()
				version, _ := strconv.ParseInt(p.ResourceVersion, 10, 64)
				if version < oldest || version > newest || p.Spec.NodeName != p.ResourceVersion || p.Name != realPod(n).Name {
					t.Errorf("seed %d: Pod %d is %s at %s with node %s, want version %d to %d", seed, n, p.Name, p.ResourceVersion, p.Spec.NodeName, oldest, newest)
					return
				}
				if own {
					p.Name, p.ResourceVersion = "changed", "0" // no other reader sees it
				}
				if got := budget.Status(); got.Bytes > limit || got.Bytes < 0 {
					t.Errorf("seed %d: the budget has %d bytes, want at most %d", seed, got.Bytes, limit)
					return
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(seed, 99))
	for range steps {
		n := random.IntN(pods)
		begun[n].Store(int64(b.version + 1))
		b.write(n)
		ended[n].Store(int64(b.version))
	}
	done.Store(true)
	readers.Wait()
	var bytes int64
	for _, k := range budget.slots {
		if k == nil {
			continue
		}
		bytes += k.bytes
		p := objectAt[*corev1.Pod](k.object, k.content.typ)
		item := b.Snapshot().Get(object.KeyOf(p))
		if o, err := item.Object(); err != nil || o != p {
			t.Errorf("seed %d: the budget has %s at %s, which is not the newest state (%v)", seed, p.Name, p.ResourceVersion, err)
		}
	}
	if got := budget.Status(); got.Bytes != bytes {
		t.Errorf("seed %d: the budget counts %d bytes, its objects have %d", seed, got.Bytes, bytes)
	}
}

func TestACopyIsTheCallersAndCostsOneDecode(t *testing.T) {
	for name, limit := range map[string]int64{"with a budget": 10 << 20, "without room": 1, "without a budget": 0} {
		t.Run(name, func(t *testing.T) {
			b := newBudgeted(t, NewBudget(limit))
			b.write(1)
			item := b.Snapshot().Get(object.KeyOf(realPod(1)))
			seen := map[*corev1.Pod]bool{}
			for n := range 4 {
				p, err := item.Copy()
				if err != nil {
					t.Fatal(err)
				}
				if seen[p] || p.Spec.NodeName != "1" {
					t.Fatalf("copy %d is shared with another caller, or has node %q", n, p.Spec.NodeName)
				}
				seen[p] = true
				p.Spec.NodeName = "mine"
				b.collect()
			}
			want := map[bool]int64{true: 2, false: 4}[limit > 1] // the second read gets it a place
			if got := b.decodes.Load(); got != want {
				t.Errorf("four copies took %d decodes, want %d", got, want)
			}
			if o, err := item.Object(); err != nil || seen[o] || o.Spec.NodeName != "1" {
				t.Errorf("the shared object is one of the copies, or has node %q (%v)", o.Spec.NodeName, err)
			}
		})
	}
	if _, err := (Item[*corev1.Pod]{}).Copy(); err == nil {
		t.Error("an item that does not exist was copied")
	}
}

// The last object of a budget may leave for one that is as large.
func TestObjectsOfWhichOneFitsTakeTurns(t *testing.T) {
	probe := NewBudget(10 << 20)
	one := newBudgeted(t, probe)
	one.write(0)
	one.list()
	budget := NewBudget(probe.Status().Bytes * 3 / 2)
	b := newBudgeted(t, budget)
	for n := range 3 {
		b.write(n)
	}
	for range 5 {
		b.list()
		if got := budget.Status(); got.Objects != 1 || got.Bytes > got.Limit {
			t.Errorf("the budget has %+v, want one object", got)
		}
	}
}

// An object is packed while a reader decodes it: the budget has it for the entry that readers find from then on, or not at all.
func TestAnObjectThatIsDecodedWhileItIsPackedIsSharedOrLeavesTheBudget(t *testing.T) {
	for name, decodedBefore := range map[string]bool{"by one reader": false, "by two readers": true} {
		t.Run(name, func(t *testing.T) {
			budget := NewBudget(10 << 20)
			b := newBudgeted(t, budget)
			b.write(1)
			i := b.informer
			e := i.store.current.Load().at(object.KeyOf(realPod(1)))
			edit := i.store.begin()
			n := i.archive.rewrite(e, i.archive.forms[e.form.encoding])
			edit.rewrite(e, n)
			b.list() // the state from before the edit
			if decodedBefore {
				if _, err := objectOf[*corev1.Pod](n, true); err != nil {
					t.Fatal(err)
				}
			}
			edit.commit(edit.version)
			if got := b.list(); !decodedBefore && got != 0 {
				t.Errorf("the object was decoded %d times again", got)
			}
			budget.mu.Lock()
			defer budget.mu.Unlock()
			for _, k := range budget.slots {
				if k != nil && k.decoded != n.decoded.Load() {
					t.Error("the budget has an object that no reader finds")
				}
			}
		})
	}
}
