// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package because_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/watch/because"
	"github.com/setpoint-io/setpoint/watch/event"
)

// record is a manager's record: about answers each question.
type record struct {
	asked atomic.Int64
	about func(context.Context, runs.Object) (gather.Found, error)
}

func (r *record) About(ctx context.Context, o runs.Object) (gather.Found, error) {
	r.asked.Add(1)
	return r.about(ctx, o)
}

func (r *record) Newest(context.Context, runs.Query) (gather.Found, error) {
	return gather.Found{}, errors.New("nobody asks")
}

// begin returns a Finder that has found a record, in a bubble.
func begin(t *testing.T, r *record) *because.Finder {
	t.Helper()
	return beginWithin(t, r, 0)
}

func beginWithin(t *testing.T, r *record, within time.Duration) *because.Finder {
	t.Helper()
	f := because.New(because.Options{
		Find:   func(context.Context) ([]gather.Record, error) { return []gather.Record{r}, nil },
		Words:  func(*event.Event) string { return "image app:1 → app:2" },
		Within: within,
	})
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	go f.Run(ctx)
	synctest.Wait()
	return f
}

func created(name, by string) *event.Event {
	return &event.Event{Verb: event.Created, Kind: event.Kind{Version: "v1", Kind: "Pod"}, Key: object.Key{Namespace: "shop", Name: name},
		UID: types.UID(name), Version: "7", Authors: []event.Author{{Manager: by}}}
}

var web = runs.Object{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "d"}

// rollout is a run that created Pods, because the ReplicaSet was made, because the Deployment was updated.
func rollout(pods ...string) gather.Found {
	first := runs.Run{Number: 1, Controller: "deployment-controller", Object: web}
	run := explain.Traced{
		Run: runs.Run{Number: 2, Controller: "replicaset-controller"},
		Origins: []runs.Origin{{
			Cause: runs.Cause{Verb: "Added", Object: runs.Object{Group: "apps", Kind: "ReplicaSet", Namespace: "shop", Name: "web-1", UID: "r"}, Version: "6"},
			Run:   &first, Origins: []runs.Origin{{Cause: runs.Cause{Verb: "Updated", Object: web, Version: "5"}, NotKnown: runs.WrittenByOthers}},
		}},
	}
	for _, name := range pods {
		run.Writes = append(run.Writes, runs.Write{Verb: "create", Version: "7", Object: runs.Object{Kind: "Pod", Namespace: "shop", Name: name, UID: types.UID(name)}})
	}
	return gather.Found{Runs: []explain.Traced{run}}
}

// The cause of a change is what began the chain of runs, in the words of the change that the watch has seen. The answer about one
// Pod explains the others of its run.
func TestTheCauseIsWhatBeganTheChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{about: func(context.Context, runs.Object) (gather.Found, error) { return rollout("a", "b"), nil }}
		f := begin(t, r)
		edit := &event.Event{Verb: event.Updated, Kind: event.Kind{Group: "apps", Version: "v1", Kind: "Deployment"}, UID: "d", Version: "5",
			Key: object.Key{Namespace: "shop", Name: "web"}}
		a, b := created("a", "setpoint"), created("b", "setpoint")
		f.Fill(t.Context(), []*event.Event{edit, a})
		before := r.asked.Load()
		f.Fill(t.Context(), []*event.Event{b})
		want := event.Cause{Controller: "replicaset-controller", Run: 2, Object: "Deployment.apps shop/web", Verb: "updated", Change: "image app:1 → app:2"}
		if edit.Cause != nil || a.Cause == nil || *a.Cause != want || b.Cause == nil || *b.Cause != want {
			t.Errorf("the causes are %+v, %+v and %+v", edit.Cause, a.Cause, b.Cause)
		}
		if after := r.asked.Load(); after != before {
			t.Errorf("the second Pod of the run took %d requests", after-before)
		}
	})
}

// A change that happens before a manager is found is told in words as the cause of a later one.
func TestAChangeDuringTheFirstSearchHasWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{about: func(context.Context, runs.Object) (gather.Found, error) { return rollout("a"), nil }}
		f := because.New(because.Options{
			Find: func(context.Context) ([]gather.Record, error) {
				time.Sleep(time.Second)
				return []gather.Record{r}, nil
			},
			Words: func(*event.Event) string { return "image app:1 → app:2" },
		})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go f.Run(ctx)
		f.Fill(ctx, []*event.Event{{Verb: event.Updated, Kind: event.Kind{Group: "apps", Version: "v1", Kind: "Deployment"}, UID: "d", Version: "5",
			Key: object.Key{Namespace: "shop", Name: "web"}}})
		time.Sleep(2 * time.Second)
		a := created("a", "setpoint")
		f.Fill(ctx, []*event.Event{a})
		if a.Cause == nil || a.Cause.Change != "image app:1 → app:2" {
			t.Errorf("the cause is %+v", a.Cause)
		}
	})
}

// A run is recorded when it has ended, so the record is asked again.
func TestARunThatHasNotEndedIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := time.Now().Add(60 * time.Millisecond)
		f := begin(t, &record{about: func(context.Context, runs.Object) (gather.Found, error) {
			if time.Now().Before(ended) {
				return gather.Found{}, nil
			}
			return rollout("a"), nil
		}})
		a := created("a", "setpoint")
		f.Fill(t.Context(), []*event.Event{a})
		if a.Cause == nil {
			t.Error("it has no cause")
		}
	})
}

// Changes that no controller of the manager makes are waited for three times, and then asked for once each.
func TestChangesOfOthersAreNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{about: func(context.Context, runs.Object) (gather.Found, error) { return gather.Found{}, nil }}
		f := begin(t, r)
		for i := range 5 {
			before, asked := time.Now(), r.asked.Load()
			f.Fill(t.Context(), []*event.Event{created(fmt.Sprint(i), "kubelet")})
			took, want := time.Since(before), time.Duration(0)
			if i < 3 {
				want = because.Bound
			}
			if took != want || i >= 3 && r.asked.Load() != asked+1 {
				t.Errorf("change %d took %s and %d requests, want %s", i, took, r.asked.Load()-asked, want)
			}
		}
	})
}

// A manager that hangs delays one batch by the bound, and then none for a while.
func TestAManagerThatHangsDelaysOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{about: func(ctx context.Context, _ runs.Object) (gather.Found, error) {
			<-ctx.Done()
			return gather.Found{}, ctx.Err()
		}}
		f := begin(t, r)
		for i, want := range []time.Duration{because.Bound, 0, 0} {
			before := time.Now()
			a := created("a", "setpoint")
			f.Fill(t.Context(), []*event.Event{a})
			if took := time.Since(before); took != want || a.Cause != nil {
				t.Errorf("batch %d took %s and has the cause %v, want %s", i, took, a.Cause, want)
			}
		}
		time.Sleep(because.Pause)
		asked := r.asked.Load()
		if f.Fill(t.Context(), []*event.Event{created("a", "setpoint")}); r.asked.Load() != asked+1 {
			t.Error("after the pause the manager is not asked")
		}
	})
}

// A manager that is slow explains a change if the user waits longer than it takes.
func TestALongerBoundWaitsForASlowManager(t *testing.T) {
	for within, want := range map[time.Duration]time.Duration{0: because.Bound, 2 * time.Second: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			r := &record{about: func(ctx context.Context, _ runs.Object) (gather.Found, error) {
				select {
				case <-time.After(time.Second):
					return rollout("a"), nil
				case <-ctx.Done():
					return gather.Found{}, ctx.Err()
				}
			}}
			f := beginWithin(t, r, within)
			before, a := time.Now(), created("a", "setpoint")
			f.Fill(t.Context(), []*event.Event{a})
			if took := time.Since(before); took != want || (a.Cause != nil) != (within > 0) {
				t.Errorf("within %s a batch took %s, want %s, and has the cause %v", within, took, want, a.Cause)
			}
		})
	}
}

// Without a manager no request is sent. One that comes later is found.
func TestAManagerThatComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{about: func(context.Context, runs.Object) (gather.Found, error) { return rollout("a"), nil }}
		began := time.Now()
		f := because.New(because.Options{Find: func(context.Context) ([]gather.Record, error) {
			if time.Since(began) < because.LookEvery {
				return nil, errors.New("no manager")
			}
			return []gather.Record{r}, nil
		}})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go f.Run(ctx)
		synctest.Wait()
		a := created("a", "setpoint")
		if f.Fill(ctx, []*event.Event{a}); a.Cause != nil || r.asked.Load() != 0 {
			t.Errorf("without a manager the cause is %v after %d requests", a.Cause, r.asked.Load())
		}
		time.Sleep(because.LookEvery)
		synctest.Wait()
		if f.Fill(ctx, []*event.Event{a}); a.Cause == nil {
			t.Error("with a manager there is no cause")
		}
	})
}

// Existing objects, troubles and what happened while the watch was away are not asked for, and of a large batch only the first.
func TestWhatIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{about: func(context.Context, runs.Object) (gather.Found, error) { return rollout(), nil }}
		f := begin(t, r)
		missed, existing, failing := created("a", "x"), created("b", "x"), created("c", "x")
		missed.Missed, existing.Verb, failing.Verb = true, event.Existing, event.Failing
		if f.Fill(t.Context(), []*event.Event{missed, existing, failing}); r.asked.Load() != 0 {
			t.Errorf("%d requests", r.asked.Load())
		}
		var many []*event.Event
		for i := range 100 {
			many = append(many, created(fmt.Sprint(i), "y"))
		}
		for range 4 { // until they are not waited for any more
			f.Fill(t.Context(), many)
		}
		asked := r.asked.Load()
		if f.Fill(t.Context(), many); r.asked.Load() != asked+32 {
			t.Errorf("of 100 changes %d are asked for", r.asked.Load()-asked)
		}
	})
}

// A run that is late three times in a row is waited for again: later the record has it. The changes of a program that no manager records are
// not waited for again, minutes later either.
func TestALateRunIsToldFromAProgramThatNoManagerRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := time.Second // until a run is recorded
		began := map[string]time.Time{}
		f := begin(t, &record{about: func(_ context.Context, o runs.Object) (gather.Found, error) {
			if at, known := began[o.Name]; known && time.Since(at) >= late {
				return rollout(o.Name), nil
			}
			return gather.Found{}, nil
		}})
		for i := range 3 {
			slow, other := fmt.Sprint("slow-", i), fmt.Sprint("other-", i)
			began[slow] = time.Now()
			f.Fill(t.Context(), []*event.Event{created(slow, "setpoint"), created(other, "kubelet")})
		}
		time.Sleep(2*because.Later + because.LookEvery)
		synctest.Wait()
		late = 60 * time.Millisecond
		began["quick"] = time.Now()
		quick := created("quick", "setpoint")
		if f.Fill(t.Context(), []*event.Event{quick}); quick.Cause == nil {
			t.Error("a run is not waited for, since others of its field manager were late")
		}
		for range 5 {
			time.Sleep(because.LookEvery)
			before := time.Now()
			if f.Fill(t.Context(), []*event.Event{created("x", "kubelet")}); time.Since(before) != 0 {
				t.Errorf("a change of a program that no manager records was waited for %s", time.Since(before))
			}
		}
	})
}

// One manager that hangs delays one batch, and the others explain their changes after that without a delay.
func TestOneManagerThatHangsHidesNoCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := &record{about: func(ctx context.Context, _ runs.Object) (gather.Found, error) {
			<-ctx.Done()
			return gather.Found{}, ctx.Err()
		}}
		answers := &record{about: func(_ context.Context, o runs.Object) (gather.Found, error) { return rollout(o.Name), nil }}
		f := because.New(because.Options{Find: func(context.Context) ([]gather.Record, error) { return []gather.Record{silent, answers}, nil }})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go f.Run(ctx)
		synctest.Wait()
		for i, want := range []time.Duration{because.Bound, 0, 0} {
			before := time.Now()
			a := created(fmt.Sprint(i), "setpoint")
			f.Fill(t.Context(), []*event.Event{a})
			if took := time.Since(before); took != want || a.Cause == nil {
				t.Errorf("batch %d took %s and has the cause %v, want %s and a cause", i, took, a.Cause, want)
			}
		}
	})
}
