// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Both owners are looked at when an object goes from one to the other, and who is of
// another kind, or does not manage it, is not.
func TestOwnersAreReconciledForWhatTheyManageAndManagedBefore(t *testing.T) {
	owned := func(apiVersion, kind, name string, manages bool) map[string]any {
		return map[string]any{"ownerReferences": []any{map[string]any{
			"apiVersion": apiVersion, "kind": kind, "name": name, "uid": "u-" + name, "controller": manages,
		}}}
	}
	inBubble(t, func(t *testing.T, b *bubble) {
		b.add("child")
		b.patch("child", owned("v1", "Pod", "a", true))
		synctest.Wait()
		var runs []string
		c := controller.New("test", func(_ context.Context, req controller.Request) (controller.Result, error) {
			if req.Key != key("child") {
				runs = append(runs, req.Key.Name)
			}
			return controller.Result{}, nil
		}, controller.For(b.pods, func(cache.Event[*corev1.Pod]) bool { return false }), controller.Owns(b.pods), b.logger())
		defer b.start(c)()
		check := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			if slices.Sort(runs); !slices.Equal(runs, want) {
				t.Errorf("%s: runs of %v, want %v", what, runs, want)
			}
			runs = nil
		}
		check("an object that is there", "a")
		b.change("child")
		check("a change", "a")
		b.patch("child", owned("v1", "Pod", "b", true))
		check("another owner", "a", "b")
		b.patch("child", owned("v1", "Pod", "b", false))
		check("an owner that does not manage it any more", "b")
		b.patch("child", owned("apps/v1", "Pod", "c", true))
		check("an owner of another group")
		b.patch("child", owned("v1", "Node", "c", true))
		check("an owner of another kind")
		b.patch("child", owned("v1", "Pod", "d", true))
		check("an owner", "d")
		if err := client.For[*corev1.Pod](b.client).Delete(t.Context(), key("child")); err != nil {
			t.Fatal(err)
		}
		check("a deletion", "d")
	})
}

func TestEventsThatAPredicateDoesNotChooseStartNoRun(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var runs []string
		mapped := 0
		chosen := func(e cache.Event[*corev1.Pod]) bool { return strings.HasPrefix(e.Key().Name, "yes") }
		c := controller.New("test", func(_ context.Context, req controller.Request) (controller.Result, error) {
			runs = append(runs, req.Key.Name)
			return controller.Result{}, nil
		}, controller.For(b.pods, nil, chosen, predicate.LabelsChanged),
			controller.Watches(b.pods, func(cache.Item[*corev1.Pod], func(object.Key)) { mapped++ }, chosen), b.logger())
		defer b.start(c)()
		b.add("yes", "no")
		synctest.Wait()
		b.change("yes") // no label
		b.patch("no", map[string]any{"labels": map[string]any{"a": "b"}})
		synctest.Wait()
		if !slices.Equal(runs, []string{"yes"}) || mapped != 3 {
			t.Errorf("runs of %v, %d states mapped; want one of yes, and 3: as it came, and before and after the change", runs, mapped)
		}
	})
}

// What a Reconciler says that it reads is there when it first runs, starts no run, and
// is waited for where it wrote it.
func TestWhatIsReadIsThereBeforeTheFirstRunAndShowsOwnWrites(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.add("seen")
		b.line.to().Delay(func(q *fakeapi.Request) time.Duration {
			if q.HTTP.Method == http.MethodGet && q.Key.Namespace == "ns" {
				return time.Minute
			}
			return 0
		})
		others := cache.Informer[*corev1.Pod](b.factory, cache.InNamespace("ns"))
		runs := make(chan string, 10)
		c := controller.New("test", func(ctx context.Context, req controller.Request) (controller.Result, error) {
			runs <- fmt.Sprint(slices.Sorted(maps.Keys(names(others))))
			if len(runs) > 1 {
				return controller.Result{}, nil
			}
			b.line.to().HoldWatches(true)
			_, err := client.For[*corev1.Pod](b.client).Create(ctx, pod("written"))
			return controller.Result{After: time.Nanosecond}, err
		}, controller.Reads(others), b.logger())
		c.Queue().Add(object.Key{Name: "it"})
		defer b.start(c)()
		synctest.Wait()
		if len(runs) > 0 {
			t.Errorf("it ran before there was anything to read, and saw %s", <-runs)
		}
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if len(runs) != 1 || len(c.Waiting()) != 1 {
			t.Errorf("%d runs, waiting for %v; want one, and its write waited for", len(runs), c.Waiting())
		}
		b.line.to().HoldWatches(false)
		time.Sleep(time.Second)
		synctest.Wait()
		if len(runs) != 2 {
			t.Fatalf("%d runs, want 2", len(runs))
		}
		if first, second := <-runs, <-runs; first != "[parent seen]" || second != "[parent seen written]" {
			t.Errorf("the runs saw %s and %s", first, second)
		}
	})
}

func TestFailedKeysWaitAsLongAsTheLimiterSays(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		began := time.Now()
		var at []time.Duration
		c := controller.New("test", func(context.Context, controller.Request) (controller.Result, error) {
			if at = append(at, time.Since(began)); len(at) < 4 {
				return controller.Result{}, errors.New("no")
			}
			return controller.Result{}, nil
		}, controller.RateLimit(&workqueue.Exponential[object.Key]{Base: time.Minute, Max: 2 * time.Minute}), b.logger())
		defer b.start(c)()
		c.Queue().Add(key("a"))
		time.Sleep(time.Hour)
		synctest.Wait()
		if got, want := fmt.Sprint(at), "[0s 1m0s 3m0s 5m0s]"; got != want {
			t.Errorf("runs at %s, want %s", got, want)
		}
	})
}

func TestNamespacesTakeTurnsIfTheyAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		options []controller.Option
		runsOf  int // of the namespace with many keys, before the one of the other
	}{"told": {[]controller.Option{controller.Fair()}, 1}, "not told": {nil, 1000}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				before, found := 0, false
				loop := controller.New("test", func(_ context.Context, req controller.Request) (controller.Result, error) {
					if found = found || req.Key.Namespace == "small"; !found {
						before++
					}
					return controller.Result{}, nil
				}, append(c.options, b.logger())...)
				for i := range 1000 {
					loop.Queue().Add(object.Key{Namespace: "big", Name: fmt.Sprint(i)})
				}
				loop.Queue().Add(object.Key{Namespace: "small", Name: "one"})
				defer b.start(loop)()
				if !found || before != c.runsOf {
					t.Errorf("%d runs before that of the small namespace (%v), want %d", before, found, c.runsOf)
				}
			})
		})
	}
}

func TestPanicInABatchIsOneOfTheRun(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		c := controller.New("test", func(ctx context.Context, req controller.Request) (controller.Result, error) {
			if req.Attempt > 0 {
				return controller.Result{}, nil
			}
			_, err := owned.SlowStart(ctx, 10, 4, func(_ context.Context, i int) error {
				if i == 2 {
					panicsInABatch()
				}
				return nil
			})
			return controller.Result{}, err
		}, b.logger())
		defer b.start(c)()
		c.Queue().Add(key("a"))
		synctest.Wait()
		if p := c.Panics()["the reconciler"]; p.Times != 1 || p.Text != "in a batch" || p.Object != "ns/a" {
			t.Errorf("known of the panic: %+v", p)
		}
		if text := b.log.String(); !strings.Contains(text, "panicsInABatch") {
			t.Errorf("the log does not say where it was:\n%s", text)
		}
		if last, _ := c.Failures(); last[key("a")].Error != "reconciling ns/a: panic: in a batch" {
			t.Errorf("the failure is %+v", last)
		}
	})
}

func panicsInABatch() { panic("in a batch") }
