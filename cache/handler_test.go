// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/object"
)

func add(t *testing.T, i SharedInformer[*corev1.Pod], h Handler[*corev1.Pod], o HandlerOptions) *Registration {
	t.Helper()
	r, err := i.AddHandler(h, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestHandlerIsToldOfEveryKindOfChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(added(pod("a", "1")), added(pod("b", "2")), allSent("5"))
		_, informer := newTestInformer(t, w)
		var l told
		add(t, informer, l.handler, HandlerOptions{})
		defer start(t, informer)()
		synctest.Wait()
		got := strings.Split(l.take(), "\n")
		if len(got) != 2 || !strings.Contains(strings.Join(got, " "), "Added a 1 initial") {
			t.Errorf("initial: %q", got)
		}
		for _, step := range []struct {
			event fakeEvent
			want  string
		}{
			{modified(pod("a", "6")), "Updated a 1→6"},
			{deleted(pod("b", "7")), "Deleted b 7"},
			{added(pod("c", "8")), "Added c 8"},
			{modified(pod("a", "9", uid("other"))), "Replaced a 6→9"},
		} {
			w.events <- step.event
			synctest.Wait()
			want(t, "told", l.take(), step.want)
		}
	})
}

func TestRelistTellsDeletionsFirstAndMarksThemStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(added(pod("a", "1")), added(pod("b", "2")), allSent("5"))
		_, informer := newTestInformer(t, w, watching(added(pod("b", "2")), added(pod("c", "7")), allSent("9")))
		var l told
		var seen []string
		add(t, informer, func(e Event[*corev1.Pod]) {
			l.handler(e)
			// A handler finds the store already replaced.
			seen = append(seen, contents(informer))
		}, HandlerOptions{})
		defer start(t, informer)()
		synctest.Wait()
		l.take()
		seen = nil
		w.events <- failing(errExpired)
		synctest.Wait()
		want(t, "told", l.take(), "Deleted a 1 stale\nAdded c 7")
		want(t, "the store while told", strings.Join(seen, "|"), "b@2 c@7|b@2 c@7")
	})
}

// However quick a handler is, what it is notified of is in the store already. The informer
// is held up behind the first of two handlers, which looks into the store then.
func TestTheStoreIsAsFarAsWhatHandlersAreToldOf(t *testing.T) {
	w := watching(added(pod("a", "1")), allSent("5"))
	relisted := watching(added(pod("b", "7")), allSent("9"))
	_, informer := newTestInformer(t, w, relisted)
	stores := make(chan string)
	add(t, informer, func(e Event[*corev1.Pod]) { stores <- e.Kind.String() + ": " + contents(informer) }, HandlerOptions{})
	second := add(t, informer, func(Event[*corev1.Pod]) {}, HandlerOptions{})
	// An index function is called before any handler is notified.
	var hold atomic.Bool
	NewIndex(informer, func(Item[*corev1.Pod]) ([]string, error) {
		if hold.CompareAndSwap(true, false) {
			second.queue.mu.Lock()
		}
		return nil, nil
	})
	defer start(t, informer)()
	want(t, "at first", <-stores, "Added: a@1")
	hold.Store(true)
	w.events <- modified(pod("a", "6"))
	want(t, "a change", <-stores, "Updated: a@6")
	second.queue.mu.Unlock()
	told, stop := informer.Observed("6")
	defer stop()
	<-told // the second one too
	second.queue.mu.Lock()
	w.events <- failing(errExpired)
	want(t, "a new state, the first of its changes", <-stores, "Deleted: b@7")
	second.queue.mu.Unlock()
	want(t, "a new state", <-stores, "Added: b@7")
	relisted.events <- deleted(pod("b", "10"))
	want(t, "a deletion", <-stores, "Deleted: ")
}

func TestLateHandlerIsToldOfEverythingOnceAndAsInitial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(added(pod("a", "1")), allSent("5"))
		_, informer := newTestInformer(t, w)
		defer start(t, informer)()
		synctest.Wait()
		var l told
		r := add(t, informer, l.handler, HandlerOptions{})
		w.events <- modified(pod("a", "6"))
		synctest.Wait()
		// The two may have been merged or not; the newest state comes last.
		got := l.take()
		if got != "Added a 1 initial\nUpdated a 1→6" && got != "Added a 6 initial" {
			t.Errorf("told %q", got)
		}
		<-r.Synced()
	})
}

func TestHandlerIsSyncedAfterItsInitialItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, informer := newTestInformer(t, watching(added(pod("a", "1")), added(pod("b", "2")), allSent("5")))
		gate := make(chan struct{})
		r := add(t, informer, func(Event[*corev1.Pod]) { <-gate }, HandlerOptions{Name: "slow"})
		defer start(t, informer)()
		synctest.Wait()
		if r.Status().Synced {
			t.Error("synced while an initial item is being handled")
		}
		close(gate)
		synctest.Wait()
		if !r.Status().Synced {
			t.Error("not synced after the initial items")
		}
	})
}

func TestPanicIsContainedAndDoesNotKeepTheHandlerUnsynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(added(pod("a", "1")), allSent("5"))
		_, informer := newTestInformer(t, w)
		var l told
		r := add(t, informer, func(e Event[*corev1.Pod]) {
			if e.Initial {
				panic("oh")
			}
			l.handler(e)
		}, HandlerOptions{})
		defer start(t, informer)()
		<-r.Synced()
		w.events <- modified(pod("a", "6"))
		synctest.Wait()
		want(t, "told", l.take(), "Updated a 1→6")
		if s := r.Status(); s.Panics != 1 || s.Handled != 2 {
			t.Errorf("status %+v", s)
		}
	})
}

func TestBlockedHandlerDelaysNobodyAndHoldsOneDeltaAnObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(allSent("5"))
		_, informer := newTestInformer(t, w)
		gate := make(chan struct{})
		var blocked told
		slow := add(t, informer, func(e Event[*corev1.Pod]) { <-gate; blocked.handler(e) }, HandlerOptions{Name: "blocked"})
		var others atomic.Int64
		add(t, informer, func(Event[*corev1.Pod]) { others.Add(1) }, HandlerOptions{})
		defer start(t, informer)()

		version := 10
		next := func() string { version++; return fmt.Sprint(version) }
		w.events <- added(pod("first", next())) // the one it blocks in
		synctest.Wait()
		const rounds = 300
		for range rounds {
			for _, e := range []fakeEvent{
				modified(pod("a", next())), modified(pod("b", next())),
				added(pod("short", next())), deleted(pod("short", next())),
			} {
				w.events <- e
				synctest.Wait() // the other handler keeps up
			}
		}
		if got := others.Load(); got != 1+4*rounds {
			t.Errorf("the other handler was told %d times, want %d", got, 1+4*rounds)
		}
		s := slow.Status()
		if s.Waiting != 2 {
			t.Errorf("%d deltas wait, want one for each of the two objects that are there", s.Waiting)
		}
		time.Sleep(time.Minute)
		if s := slow.Status(); s.Busy < time.Minute {
			t.Errorf("busy for %s, want it visible", s.Busy)
		}
		close(gate)
		synctest.Wait()
		want(t, "told", blocked.take(), fmt.Sprintf("Added first 11\nAdded a %d\nAdded b %d", version-3, version-2))
	})
}

func TestMergedChangesGoFromTheOldestKnownToTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(added(pod("a", "1")), added(pod("b", "1")), added(pod("c", "1")), allSent("5"))
		_, informer := newTestInformer(t, w)
		gate := make(chan struct{}, 100)
		var l told
		add(t, informer, func(e Event[*corev1.Pod]) { <-gate; l.handler(e) }, HandlerOptions{})
		defer start(t, informer)()
		for range 3 {
			gate <- struct{}{}
		}
		synctest.Wait()
		l.take()
		w.events <- modified(pod("z", "6")) // blocks in this one
		synctest.Wait()
		w.events <- modified(pod("a", "7"))
		w.events <- modified(pod("a", "8"))
		w.events <- modified(pod("b", "9"))
		w.events <- deleted(pod("b", "10"))
		w.events <- deleted(pod("c", "11"))
		w.events <- added(pod("c", "12", uid("c2")))
		synctest.Wait()
		close(gate)
		synctest.Wait()
		want(t, "told", l.take(), "Added z 6\nUpdated a 1→8\nDeleted b 10\nReplaced c 1→12")
	})
}

func TestAHandlerThatAsksForEveryChangeIsToldOfEachOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(added(pod("a", "1")), allSent("5"))
		_, informer := newTestInformer(t, w)
		gate := make(chan struct{}, 100)
		var l told
		r := add(t, informer, func(e Event[*corev1.Pod]) { <-gate; l.handler(e) }, HandlerOptions{EveryStep: true})
		defer start(t, informer)()
		synctest.Wait() // blocks in the first one
		w.events <- modified(pod("a", "6"))
		w.events <- modified(pod("a", "7"))
		w.events <- added(pod("b", "8"))
		w.events <- deleted(pod("b", "9"))
		synctest.Wait()
		if s := r.Status(); s.Waiting != 4 || s.Merged != 0 {
			t.Errorf("%d wait and %d were merged, want 4 and none", s.Waiting, s.Merged)
		}
		close(gate)
		synctest.Wait()
		want(t, "told", l.take(), "Added a 1 initial\nUpdated a 1→6\nUpdated a 6→7\nAdded b 8\nDeleted b 9")
		if s := r.Status(); s.Waiting != 0 {
			t.Errorf("%d wait still", s.Waiting)
		}
	})
}

func TestAPanicIsLoggedWithItsStackAndNamesTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, informer := newTestInformer(t, watching(added(pod("a", "1")), allSent("5")))
		var log bytes.Buffer
		informer.informer.log = slog.New(slog.NewTextHandler(&log, nil))
		r := add(t, informer, func(Event[*corev1.Pod]) { panic("oh") }, HandlerOptions{Name: "frail"})
		defer start(t, informer)()
		<-r.Synced()
		synctest.Wait()
		for _, part := range []string{"handler=frail", "object=ns/a", "panic=oh", "TestAPanicIsLoggedWithItsStackAndNamesTheHandler"} {
			if !strings.Contains(log.String(), part) {
				t.Errorf("the log does not say %q: %s", part, &log)
			}
		}
	})
}

func TestAHandlerIsCalledOnceAtATimeAndInOrderForEachObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(allSent("1"))
		_, informer := newTestInformer(t, w)
		var running, overlaps atomic.Int64
		known := map[string]object.Version{}
		add(t, informer, func(e Event[*corev1.Pod]) {
			if running.Add(1) > 1 {
				overlaps.Add(1)
			}
			time.Sleep(time.Millisecond)
			name := e.Key().Name
			if before, ok := known[name]; ok != e.Old.Exists() || ok && e.Old.Meta().Version != before {
				t.Errorf("%s %s: the handler knows version %q", e.Kind, name, before)
			}
			known[name] = e.New.Meta().Version
			running.Add(-1)
		}, HandlerOptions{})
		defer start(t, informer)()
		for i := range 500 {
			w.events <- modified(pod(fmt.Sprint("p", i%7), fmt.Sprint(i+2)))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := overlaps.Load(); n != 0 {
			t.Errorf("%d calls ran beside another", n)
		}
		if len(known) != 7 || known["p2"] != "501" { // 499 is 7*71+2
			t.Errorf("the handler knows %v", known)
		}
	})
}

// A handler that is added at any moment is notified of what is there and then of each
// change: nothing is missing between the two, and nothing comes twice.
func TestAHandlerAddedWhileChangesComeMissesNothing(t *testing.T) {
	const changes, handlers = 900, 30 // a watch of a test holds a thousand
	w := watching(allSent("1"))
	_, informer := newTestInformer(t, w)
	defer start(t, informer)()
	<-informer.Synced()
	for i := range changes {
		o, version := fmt.Sprint("p", i%40), fmt.Sprint(i+2)
		if i%11 == 10 {
			w.events <- deleted(pod(o, version))
		} else {
			w.events <- modified(pod(o, version))
		}
	}
	end, stop := informer.Observed(object.Version(fmt.Sprint(changes + 1)))
	defer stop()
	type view struct {
		registration *Registration
		mu           sync.Mutex
		known        map[object.Key]object.Version
	}
	var views []*view
	for range handlers {
		v := &view{known: map[object.Key]object.Version{}}
		v.registration = add(t, informer, func(e Event[*corev1.Pod]) {
			v.mu.Lock()
			defer v.mu.Unlock()
			before, knew := v.known[e.Key()]
			switch {
			case knew != (e.Kind != Added):
				t.Errorf("%s %s, which the handler knew: %v", e.Kind, e.Key(), knew)
			case e.Kind == Updated && e.Old.Meta().Version != before:
				t.Errorf("%s goes from %s, the handler knew %s", e.Key(), e.Old.Meta().Version, before)
			case e.Initial && e.Kind != Added:
				t.Errorf("%s is marked as initial", e.Kind)
			}
			if e.Kind == Deleted {
				delete(v.known, e.Key())
			} else {
				v.known[e.Key()] = e.New.Meta().Version
			}
		}, HandlerOptions{EveryStep: true})
		views = append(views, v)
		runtime.Gosched()
	}
	<-end
	truth := map[object.Key]object.Version{}
	for key, item := range informer.All() {
		truth[key] = item.Meta().Version
	}
	for _, v := range views {
		<-v.registration.Synced()
		knows := func() bool {
			v.mu.Lock()
			defer v.mu.Unlock()
			return maps.Equal(v.known, truth)
		}
		for deadline := time.Now().Add(time.Minute); !knows(); runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatalf("a handler knows %v, true is %v", v.known, truth)
			}
		}
	}
}

func TestAHandlerOfAnEmptyKindIsSyncedOnceThatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching()
		_, informer := newTestInformer(t, w)
		r := add(t, informer, func(Event[*corev1.Pod]) {}, HandlerOptions{})
		defer start(t, informer)()
		synctest.Wait()
		if r.Status().Synced {
			t.Error("synced before it is known that there is nothing")
		}
		w.events <- allSent("5")
		synctest.Wait()
		if !r.Status().Synced {
			t.Error("not synced, and there is nothing to be notified of")
		}
	})
}

func TestRemovingOneHandlerLeavesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(added(pod("a", "1")), allSent("5"))
		_, informer := newTestInformer(t, w)
		var one, other told
		r := add(t, informer, one.handler, HandlerOptions{})
		add(t, informer, other.handler, HandlerOptions{})
		defer start(t, informer)()
		synctest.Wait()
		one.take()
		other.take()
		r.Remove()
		w.events <- modified(pod("a", "6"))
		synctest.Wait()
		want(t, "removed", one.take(), "")
		want(t, "not removed", other.take(), "Updated a 1→6")
	})
}

func TestRemoveWorksFromAnywhereAndMoreThanOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(added(pod("a", "1")), allSent("5"))
		_, informer := newTestInformer(t, w)
		calls := 0
		var r *Registration
		r = add(t, informer, func(Event[*corev1.Pod]) { calls++; r.Remove(); r.Remove() }, HandlerOptions{})
		defer start(t, informer)()
		synctest.Wait()
		w.events <- modified(pod("a", "6"))
		synctest.Wait()
		r.Remove()
		if calls != 1 {
			t.Errorf("told %d times, removed at the first", calls)
		}
		if n := len(informer.Handle().Status().Handlers); n != 0 {
			t.Errorf("%d handlers are left", n)
		}
	})
}

func TestResyncGoesOnlyToWhoAskedForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, informer := newTestInformer(t, watching(added(pod("a", "1")), allSent("5")))
		var asked, other told
		add(t, informer, asked.handler, HandlerOptions{Resync: time.Millisecond}) // below a second is a second
		add(t, informer, other.handler, HandlerOptions{})
		stop := start(t, informer)
		synctest.Wait()
		asked.take()
		other.take()
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		stop()
		want(t, "who asked", asked.take(), "Resync a 1→1\nResync a 1→1")
		want(t, "who did not", other.take(), "")
	})
}

func TestGetOfWhatIsNotThereIsNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, informer := newTestInformer(t, watching(added(pod("a", "1")), allSent("5")))
		defer start(t, informer)()
		synctest.Wait()
		if p, err := informer.Get(key("a")); err != nil || p.Name != "a" {
			t.Errorf("Get(a) = %v, %v", p, err)
		}
		_, err := informer.Get(key("b"))
		if !apierrors.IsNotFound(err) || err.Error() != `pods "ns/b" not found` {
			t.Errorf("Get(b): %v", err)
		}
	})
}
