// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
	"github.com/setpoint-io/setpoint/workqueue"
)

func TestKeyThatFailsForEverIsShownAndDelaysNothingElse(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.add("bad")
		synctest.Wait()
		var pauses []time.Duration
		var last time.Time
		waited := time.Duration(0)
		var mended atomic.Bool
		var created sync.Map // name: time
		c := controller.New("test", func(_ context.Context, req controller.Request) (controller.Result, error) {
			if began, ok := created.Load(req.Key.Name); ok {
				waited = max(waited, time.Since(began.(time.Time)))
			}
			if req.Key != key("bad") || mended.Load() {
				return controller.Result{}, nil
			}
			if !last.IsZero() {
				pauses = append(pauses, time.Since(last))
			}
			last = time.Now()
			return controller.Result{}, fmt.Errorf("try %d", req.Attempt)
		}, controller.For(b.pods), b.logger())
		stop := b.start(c)
		defer stop()
		for i := range 1000 {
			name := fmt.Sprint("good-", i)
			created.Store(name, time.Now())
			b.add(name)
			time.Sleep(7 * time.Second)
		}
		synctest.Wait()
		if waited > 0 {
			t.Errorf("a good key waited %s for the one worker", waited)
		}
		const longest = 1000 * time.Second
		for i, pause := range pauses {
			if want := min(5*time.Millisecond<<i, longest); pause != want {
				t.Errorf("pause %d was %s, want %s", i, pause, want)
			}
		}
		if last := pauses[len(pauses)-1]; last != longest {
			t.Errorf("in two hours the pauses grew to %s", last)
		}
		failures, total := c.Failures()
		if f := failures[key("bad")]; len(failures) != 1 || f.Runs != len(pauses)+1 || f.Error != fmt.Sprintf("try %d", len(pauses)) || !f.At.Equal(last) || f.GivenUp || total != uint64(f.Runs) {
			t.Errorf("shown as %+v, %d in all; it ran %d times", failures, total, len(pauses)+1)
		}
		if delayed := c.Queue().Inspect(10).Delayed; len(delayed) != 1 || delayed[0].Key != key("bad") {
			t.Errorf("the queue shows %+v", delayed)
		}
		// Of a row of failures the 1st, 2nd, 4th and so on are logged.
		if n := strings.Count(b.log.String(), "trying again"); n > 8 {
			t.Errorf("%d lines in the log", n)
		}
		mended.Store(true)
		b.change("bad")
		synctest.Wait()
		if failures, _ := c.Failures(); len(failures) != 0 || c.Queue().Stats().Failing != 0 {
			t.Errorf("after a good run: %+v", failures)
		}
	})
}

func TestGivingUpIsLoudShownAndEndsWithTheNextChange(t *testing.T) {
	for name, failure := range map[string]error{"too many failures": errors.New("no"), "terminal": fmt.Errorf("reading: %w", controller.Terminal(errors.New("no")))} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				runs := 0
				var told []controller.Request
				c := controller.New("test", func(context.Context, controller.Request) (controller.Result, error) {
					runs++
					return controller.Result{}, failure
				}, controller.For(b.pods), controller.MaxRetries(3), b.logger(), controller.OnGivingUp(func(req controller.Request, err error) {
					if !errors.Is(err, failure) {
						t.Errorf("told of %v", err)
					}
					told = append(told, req)
					panic("is contained")
				}))
				stop := b.start(c)
				defer stop()
				time.Sleep(time.Hour)
				synctest.Wait()
				want := 4
				if name == "terminal" {
					want = 1
				}
				if runs != want || len(told) != 1 || told[0].Key != key("parent") {
					t.Fatalf("%d runs, told of %v; want %d, and the key once", runs, told, want)
				}
				if failures, _ := c.Failures(); !failures[key("parent")].GivenUp {
					t.Errorf("shown as %+v", failures)
				}
				if text := b.log.String(); !strings.Contains(text, "giving up until something changes") || !strings.Contains(text, "ns/parent") {
					t.Errorf("the log says:\n%s", text)
				}
				if n := c.Panics()["what is called when a key is given up"].Times; n != 1 || c.GivenUp() != 1 {
					t.Errorf("panics: %v; given up %d times", c.Panics(), c.GivenUp())
				}
				b.change("parent")
				synctest.Wait()
				if runs != want+1 {
					t.Errorf("%d runs after a change, want one more than %d", runs, want)
				}
			})
		})
	}
}

func TestPanicsAreContainedCountedAndNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.add("other")
		synctest.Wait()
		cache.NewIndex(b.pods, func(cache.Item[*corev1.Pod]) ([]string, error) { panic("index") })
		runs := map[object.Key]int{}
		c := controller.New("test", func(_ context.Context, req controller.Request) (controller.Result, error) {
			if runs[req.Key]++; req.Key.Name == "other" && runs[req.Key] == 1 {
				panic("reconciler")
			}
			return controller.Result{}, nil
		},
			controller.For(b.pods, func(e cache.Event[*corev1.Pod]) bool { panic("predicate") }),
			controller.Watches(b.pods, func(e cache.Item[*corev1.Pod], add func(object.Key)) {
				if e.Key().Name == "other" {
					panic("mapping")
				}
				add(object.Key{Name: "mapped"})
			}), b.logger())
		stop := b.start(c)
		defer stop()
		time.Sleep(time.Second)
		b.change("parent") // all goes on, the index too
		synctest.Wait()
		if runs[key("parent")] != 2 || runs[key("other")] != 2 || runs[object.Key{Name: "mapped"}] == 0 {
			t.Errorf("runs: %v; want 2 of parent, which changed, 2 of other, which failed, and mapped", runs)
		}
		got := c.Panics()
		for who, want := range map[string]controller.Panic{
			"the reconciler":      {Times: 1, Object: "ns/other", Text: "reconciler"},
			"a predicate of pods": {Times: 3, Object: "ns/parent", Text: "predicate"},
			"the mapping of pods": {Times: 1, Object: "ns/other", Text: "mapping"},
		} {
			if want.At = got[who].At; got[who] != want || want.At.IsZero() || want.At.After(time.Now()) {
				t.Errorf("%s panicked as %+v says, it is said %+v", who, want, got[who])
			}
			if text := b.log.String(); !strings.Contains(text, who) || !strings.Contains(text, "faults_test.go") {
				t.Errorf("the log does not say that %s panicked, and where:\n%s", who, text)
			}
		}
	})
}

func TestRunThatTakesTooLongIsEndedAndTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var took []time.Duration
		c := controller.New("test", func(ctx context.Context, req controller.Request) (controller.Result, error) {
			began := time.Now()
			if req.Attempt < 2 {
				<-ctx.Done()
			}
			took = append(took, time.Since(began))
			return controller.Result{}, ctx.Err()
		}, controller.For(b.pods), controller.Timeout(time.Minute), b.logger())
		stop := b.start(c)
		defer stop()
		time.Sleep(time.Hour)
		synctest.Wait()
		if fmt.Sprint(took) != "[1m0s 1m0s 0s]" {
			t.Errorf("runs took %v", took)
		}
	})
}

func TestWhatWasThereIsLowAndWhatChangesComesFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.add("a", "b", "c")
		synctest.Wait()
		ran := make(chan string, 100)
		gates := make(chan chan struct{}, 1)
		gate := make(chan struct{})
		gates <- gate
		c := controller.New("test", func(_ context.Context, req controller.Request) (controller.Result, error) {
			select {
			case gate := <-gates:
				<-gate
			default:
			}
			ran <- req.Key.Name
			return controller.Result{}, nil
		}, controller.For(b.pods), controller.Resync(time.Hour), b.logger())
		stop := b.start(c)
		defer stop()
		first := c.Queue().Inspect(10)
		if len(first.Ready) != 3 || len(first.Running) != 1 {
			t.Fatalf("the queue: %+v", first)
		}
		for _, k := range first.Ready {
			if k.Priority != workqueue.Low {
				t.Errorf("%s was there before and has priority %v", k.Key, k.Priority)
			}
		}
		b.change(first.Ready[2].Key.Name)
		b.add("new")
		synctest.Wait()
		close(gate)
		synctest.Wait()
		if len(ran) != 5 {
			t.Fatalf("%d runs, want 5", len(ran))
		}
		if <-ran; <-ran != first.Ready[2].Key.Name || <-ran != "new" {
			t.Error("what changed and what is new did not run before the rest")
		}

		// A resync is as low.
		gate = make(chan struct{})
		gates <- gate
		time.Sleep(time.Hour)
		synctest.Wait()
		ready := c.Queue().Inspect(10).Ready
		if len(ready) != 4 {
			t.Fatalf("%d keys are looked at again, and one that runs; want 5", len(ready))
		}
		for _, k := range ready {
			if k.Priority != workqueue.Low || k.Causes[0].Verb != workqueue.Resync {
				t.Errorf("%s has priority %v because %v", k.Key, k.Priority, k.Causes)
			}
		}
		close(gate)
	})
}

func TestOwnerWithoutNamespaceIsReconciledForWhatItManages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New()
		nodes := server.Serve(object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"})
		pods := server.Serve(podsResource)
		if err := nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}); err != nil {
			t.Fatal(err)
		}
		cl, err := client.New(server.Config())
		if err != nil {
			t.Fatal(err)
		}
		factory := cache.NewFactory(cl, nil)
		runs := map[object.Key]int{}
		c := controller.New("test", func(_ context.Context, req controller.Request) (controller.Result, error) {
			runs[req.Key]++
			return controller.Result{}, nil
		}, controller.For(cache.Informer[*corev1.Node](factory)), controller.Owns(cache.Informer[*corev1.Pod](factory)), quiet())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { done <- factory.Run(ctx) }()
		go func() { done <- c.Run(ctx) }()
		synctest.Wait()
		yes := true
		p := pod("p")
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u", Controller: &yes}}
		if err := pods.Add(p); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(runs) != 1 || runs[object.Key{Name: "n"}] != 2 {
			t.Errorf("runs: %v; want 2 of node n", runs)
		}
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}
