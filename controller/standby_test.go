// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/workqueue"
)

// visits notes the keys of runs.
type visits struct {
	mu   sync.Mutex
	keys []string
}

func (v *visits) reconcile(_ context.Context, req controller.Request) (controller.Result, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.keys = append(v.keys, req.Key.Name)
	return controller.Result{}, nil
}

func (v *visits) all() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.keys)
}

// standBy has a loop stand by, until the informers have nothing more for it.
func standBy(t *testing.T, c *controller.Controller) (end func()) {
	t.Helper()
	end, err := c.StandBy()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return end
}

func TestALoopThatStoodByBeginsWithWhatChangedLast(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.add("a", "b", "c")
		var v visits
		c := controller.New("c", v.reconcile, controller.For(b.pods), quiet())
		standBy(t, c)
		b.change("b")
		time.Sleep(time.Hour) // of the bubble
		b.change("c")
		b.change("c")
		synctest.Wait()
		s := c.Status(10)
		if len(v.all()) > 0 || s.Kept != 4 || s.Queue.Ready != 0 || s.Queue.Adds != 0 {
			t.Fatalf("a loop that stands by ran %v, keeps %d keys and has %d in its queue; want no run, 4 keys, and none", v.all(), s.Kept, s.Queue.Ready)
		}
		defer b.start(c)()
		if got, want := fmt.Sprint(v.all()), "[c parent a b]"; got != want {
			t.Errorf("the loop ran %s, want %s", got, want)
		}
		if s := c.Status(10); s.Kept != 0 || s.Queue.Latency.Sum > time.Second {
			t.Errorf("a loop that runs keeps %d keys, and its keys have waited for %s", s.Kept, s.Queue.Latency.Sum)
		}
		b.change("a")
		synctest.Wait()
		if got := v.all(); len(got) != 5 || got[4] != "a" {
			t.Errorf("after a change it ran %v, want a fifth run, of a", got)
		}
	})
}

func TestALoopThatStoodByMayEndOrRunAllTheSame(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var v visits
		c := controller.New("c", v.reconcile, controller.For(b.pods), quiet())
		end := standBy(t, c)
		if _, err := c.StandBy(); err == nil {
			t.Error("it stood by twice")
		}
		end()
		b.add("late")
		synctest.Wait()
		if kept := c.Status(0).Kept; kept != 0 {
			t.Errorf("after the end it keeps %d keys", kept)
		}
		if n := handlersOf(b); n != 0 {
			t.Errorf("after the end there are %d handlers", n)
		}
		stop := b.start(c)
		end() // has no effect now
		b.change("late")
		synctest.Wait()
		if got, want := fmt.Sprint(v.all()), "[parent late late]"; got != want {
			t.Errorf("the loop ran %s, want %s", got, want)
		}
		stop()
		if n := handlersOf(b); n != 0 {
			t.Errorf("after the run there are %d handlers", n)
		}
	})
}

// remove deletes a Pod.
func (b *bubble) remove(name string) {
	b.t.Helper()
	if !b.line.to().Remove(key(name)) {
		b.t.Fatalf("there is no Pod %s", name)
	}
}

func handlersOf(b *bubble) (n int) {
	for _, s := range b.factory.Status() {
		n += len(s.Handlers)
	}
	return n
}

func TestALoopThatCannotRunCannotStandBy(t *testing.T) {
	if _, err := controller.New("", nil).StandBy(); err == nil {
		t.Error("a loop without a name and without a reconciler stood by")
	}
}

// The state is mapped once, however large it is.
func TestALoopThatStandsByMapsTheStateOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.add("a", "b", "c")
		synctest.Wait()
		var v visits
		mapped := 0
		c := controller.New("c", v.reconcile, controller.For(b.pods, func(cache.Event[*corev1.Pod]) bool { mapped++; return true }), quiet())
		controller.StandByWith(c, 1)
		synctest.Wait()
		b.add("d", "e", "f", "g")
		synctest.Wait()
		if kept := c.Status(0).Kept; mapped != 8 || kept != 8 {
			t.Errorf("%d events led to %d keys, want 8 and 8", mapped, kept)
		}
		b.add("h") // the ninth key is more than twice the first four
		synctest.Wait()
		if kept := c.Status(0).Kept; mapped != 18 || kept != 9 {
			t.Errorf("%d events led to %d keys, want 18 and 9", mapped, kept)
		}
		time.Sleep(2 * time.Minute) // of the bubble
		b.change("g")
		synctest.Wait()
		defer b.start(c)()
		if got := v.all(); len(got) != 9 || got[0] != "g" {
			t.Errorf("the loop ran %v, want nine runs, g first", got)
		}
	})
}

// In a cluster where objects come and go, a manager may stand by for months.
func TestTheKeysOfObjectsThatAreGoneDoNotAddUp(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var v visits
		c := controller.New("c", v.reconcile, controller.For(b.pods), quiet())
		controller.StandByWith(c, 256)
		synctest.Wait()
		most := 0
		for i := range 2_000 {
			name := fmt.Sprint("short-", i)
			b.add(name)
			b.remove(name)
			time.Sleep(time.Second) // of the bubble
			if i%10 == 0 {
				synctest.Wait()
				most = max(most, c.Status(0).Kept)
			}
		}
		synctest.Wait()
		if most < 200 || most > 300 {
			t.Errorf("up to %d keys were kept, want up to some 256", most)
		}
		b.change("parent")
		defer b.start(c)()
		if got := v.all(); len(got) == 0 || got[0] != "parent" && !slices.Contains(got, "parent") {
			t.Errorf("the object that stayed was not reconciled")
		}
		if n := handlersOf(b); n != 1 {
			t.Errorf("the loop has %d handlers, want 1", n)
		}
	})
}

// One of two handlers is slow, and the state is mapped again meanwhile.
func TestAHandlerThatIsReplacedDisturbsNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var v visits
		entered, release := make(chan struct{}), make(chan struct{})
		var blocked atomic.Bool
		slow := func(e cache.Event[*corev1.Pod]) bool {
			if e.Key().Name == "slow" && blocked.CompareAndSwap(false, true) {
				close(entered)
				<-release
			}
			return true
		}
		c := controller.New("c", v.reconcile, controller.For(b.pods, slow), controller.Watches(b.pods, controller.SameKey[*corev1.Pod]), quiet())
		controller.StandByWith(c, 1)
		synctest.Wait()
		b.add("slow")
		<-entered
		want := []string{"parent", "slow"}
		for i := range 20 {
			name := fmt.Sprint("web-", i)
			want = append(want, name)
			b.add(name)
		}
		synctest.Wait()
		close(release)
		synctest.Wait()
		if n := handlersOf(b); n != 2 {
			t.Errorf("the loop has %d handlers, want 2", n)
		}
		defer b.start(c)()
		got := v.all()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("the loop ran %v, want %v", got, want)
		}
	})
}

// A kind is not served, and its informer never has a state.
func TestTheKeysOfALoopWithoutAllItsInformersDoNotAddUp(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var v visits
		absent := cache.Informer[*corev1.ConfigMap](b.factory)
		c := controller.New("c", v.reconcile, controller.For(b.pods), controller.Watches(absent, controller.SameKey[*corev1.ConfigMap]), quiet())
		defer controller.StandByWith(c, 50)() // it may be seeking the backlog anew at the end
		most := 0
		for i := range 2_000 {
			name := fmt.Sprint("short-", i)
			b.add(name)
			b.remove(name)
			time.Sleep(time.Second) // of the bubble
			most = max(most, c.Status(0).Kept)
		}
		if most < 50 || most > 400 {
			t.Errorf("up to %d keys were kept, want some hundreds", most)
		}
	})
}

// A delay counts from the change, and the shortest one counts.
func TestADelayPassesWhileALoopStandsBy(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var v visits
		c := controller.New("c", v.reconcile, controller.Delayed(10*time.Second, controller.For(b.pods)), quiet())
		standBy(t, c)
		time.Sleep(8 * time.Second) // of the bubble
		b.change("parent")
		synctest.Wait()
		defer b.start(c)()
		time.Sleep(time.Second)
		if got := v.all(); len(got) != 0 {
			t.Errorf("9 s after the first event the loop ran %v, want no run", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := v.all(); len(got) != 1 {
			t.Errorf("10 s after the first event the loop ran %v, want one run", got)
		}
	})
}

// A predicate may add keys of other objects.
func TestKeysThatAPredicateAddsAreKept(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var v visits
		var c *controller.Controller
		c = controller.New("c", v.reconcile, controller.For(b.pods, func(cache.Event[*corev1.Pod]) bool {
			c.Enqueue(workqueue.Add{}, key("other"))
			return false
		}), quiet())
		standBy(t, c)
		if s := c.Status(0); s.Kept != 1 || s.Queue.Adds != 0 {
			t.Errorf("%d keys are kept and %d were added to the queue, want 1 and none", s.Kept, s.Queue.Adds)
		}
		defer b.start(c)()
		b.change("parent")
		synctest.Wait()
		if got, want := fmt.Sprint(v.all()), "[other other]"; got != want {
			t.Errorf("the loop ran %s, want %s", got, want)
		}
	})
}

// A loop may begin to run at any moment, also while its keys are sought anew.
func TestNoObjectIsLostHoweverALoopBeginsToRun(t *testing.T) {
	for turn := range 30 {
		inBubble(t, func(t *testing.T, b *bubble) {
			var v visits
			c := controller.New("c", v.reconcile, controller.For(b.pods), quiet())
			controller.StandByWith(c, 50)
			synctest.Wait()
			for i := range 45 {
				name := fmt.Sprint("short-", i)
				b.add(name)
				b.remove(name)
			}
			synctest.Wait()
			// Some of these begin to seek keys anew, at another moment in each turn.
			for i := range 10 {
				b.add(fmt.Sprint("stays-", i))
				if i == turn%10 {
					defer b.start(c)()
				}
			}
			synctest.Wait()
			got := map[string]bool{}
			for _, name := range v.all() {
				got[name] = true
			}
			for i := range 10 {
				if !got[fmt.Sprint("stays-", i)] {
					t.Fatalf("stays-%d was not reconciled", i)
				}
			}
			if !got["parent"] {
				t.Fatal("parent was not reconciled")
			}
		})
	}
}

// The backlog of a loop that stands by for long is sought anew, and what came meanwhile is in the first list of the handlers then.
func TestLaterKeepsWhatCameWhileALoopStoodBy(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var v visits
		c := controller.New("c", v.reconcile, controller.For(b.pods, predicate.Later), quiet())
		controller.StandByWith(c, 4)
		synctest.Wait()
		b.add("new")
		synctest.Wait()
		time.Sleep(2 * time.Minute)
		b.add("a", "b", "c", "d")
		synctest.Wait()
		defer b.start(c)()
		if got := v.all(); !slices.Contains(got, "new") {
			t.Errorf("the loop ran %v, and not new", got)
		}
	})
}
