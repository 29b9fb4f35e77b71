// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
)

// counted is a key of two fields, neither of which is an object.
type counted struct{ namespace, label string }

func (c counted) String() string { return c.label + " in " + c.namespace }

func ofLabel(pod cache.Item[*corev1.Pod], add func(counted)) {
	if app := pod.Meta().Labels.Get("app"); app != "" {
		add(counted{pod.Key().Namespace, app})
	}
}

func (b *bubble) label(name, app string) {
	b.t.Helper()
	b.patch(name, map[string]any{"labels": map[string]any{"app": app}})
	synctest.Wait()
}

func TestALoopKeyedByAStructOfTwoFieldsWakesForTheOldAndTheNewState(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var runs []string
		c := controller.NewKeyed("counting", func(_ context.Context, req controller.RequestOf[counted]) (controller.Result, error) {
			runs = append(runs, req.Key.String()+": "+req.Causes.String())
			if req.Key.label == "bad" {
				return controller.Result{}, controller.Terminal(errors.New("bad"))
			}
			return controller.Result{}, nil
		}, controller.Watches(b.pods, ofLabel), b.logger())
		defer b.start(c)()
		b.label("parent", "one")
		b.label("parent", "two")
		b.change("parent") // both states say "two": that is one run
		synctest.Wait()
		b.label("parent", "bad")
		var want []string
		for _, run := range []struct {
			label   string
			version int
		}{{"one", 3}, {"one", 4}, {"two", 4}, {"two", 5}, {"two", 6}, {"bad", 6}} {
			want = append(want, fmt.Sprintf("%s in ns: pods: Updated Pod ns/parent at %d", run.label, run.version))
		}
		if !slices.Equal(runs, want) {
			t.Errorf("runs\n%s\nwant\n%s", strings.Join(runs, "\n"), strings.Join(want, "\n"))
		}
		s := c.Status(10)
		if f := s.Failed["bad in ns"]; !f.GivenUp || s.GivenUp != 1 || s.Failures != 1 || s.Queue.Adds != 6 {
			t.Errorf("%+v", s)
		}
		if text := b.log.String(); !strings.Contains(text, `object="bad in ns"`) {
			t.Errorf("the log does not name the key:\n%s", text)
		}
	})
}

// The key of a loop is held back for own writes as that of a controller is.
func TestALoopOfAnyKeySeesItsOwnWrites(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		runs, saw := 0, false
		c := controller.NewKeyed("writing", func(ctx context.Context, req controller.RequestOf[counted]) (controller.Result, error) {
			if runs++; runs > 1 {
				saw = names(b.pods)["child"]
				return controller.Result{}, nil
			}
			b.line.to().HoldWatches(true)
			req.Enqueue(req.Key)
			_, err := client.For[*corev1.Pod](b.client).Create(ctx, pod("child"))
			return controller.Result{}, err
		}, controller.Reads(b.pods), b.logger())
		c.Queue().Add(counted{"ns", "it"})
		defer b.start(c)()
		if waiting := c.Status(0).Waiting["it in ns"]; runs != 1 || !strings.Contains(waiting, "child") {
			t.Errorf("%d runs, waiting for %q", runs, waiting)
		}
		b.line.to().HoldWatches(false)
		synctest.Wait()
		if runs != 2 || !saw {
			t.Errorf("%d runs, the second saw what the first wrote: %v", runs, saw)
		}
	})
}

func TestARunEnqueuesFurtherKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs, causes []string
		c := controller.NewKeyed("walking", func(_ context.Context, req controller.RequestOf[int]) (controller.Result, error) {
			runs, causes = append(runs, fmt.Sprint(req.Key)), append(causes, req.Causes.String())
			switch req.Key {
			case 1:
				req.Enqueue(2, 3)
			case 3: // once more after the run, and another long after it
				if len(runs) < 4 {
					req.Enqueue(3)
					time.AfterFunc(time.Hour, func() { req.Enqueue(4) })
				}
				time.AfterFunc(2*time.Hour, func() { req.Enqueue(5) })
			}
			return controller.Result{}, nil
		}, quiet())
		c.Queue().Add(1)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		time.Sleep(90 * time.Minute)
		synctest.Wait()
		if want := []string{"1", "2", "3", "3", "4"}; !slices.Equal(runs, want) {
			t.Errorf("runs of %v, want %v", runs, want)
		}
		if want := "walking for 1: Enqueued"; causes[1] != want || causes[2] != want {
			t.Errorf("causes %q, want %q of the second and the third", causes, want)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour) // what is enqueued now is for nobody
		synctest.Wait()
		if c.Queue().Stats().Ready != 0 || len(runs) != 5 {
			t.Errorf("runs of %v", runs)
		}
		controller.Request{}.Enqueue(object.Key{Name: "nobody runs it"})
	})
}

// An object that leaves one owner for another wakes both, and one with as many owners as
// there may be wakes each once.
func TestAMappingIsAppliedToTheOldAndTheNewState(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var runs []string
		c := controller.New("owners", func(_ context.Context, req controller.Request) (controller.Result, error) {
			runs = append(runs, req.Key.Name)
			return controller.Result{}, nil
		}, controller.Watches(b.pods, func(pod cache.Item[*corev1.Pod], add func(object.Key)) {
			if pod.Meta().Labels.Get("app") == "many" {
				for i := range 2500 {
					add(key(fmt.Sprint("owner-", i%50)))
				}
				for i := range 2000 {
					add(key(fmt.Sprint("owner-", i)))
				}
				return
			}
			add(key("owner-" + pod.Meta().Labels.Get("app")))
		}), b.logger())
		defer b.start(c)()
		check := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(runs, want) {
				t.Errorf("%s wakes %v, want %v", what, runs, want)
			}
			runs = nil
		}
		check("an object that is there", "owner-")
		b.label("parent", "one")
		check("a first owner", "owner-", "owner-one")
		b.label("parent", "two")
		check("another owner", "owner-one", "owner-two")
		b.change("parent")
		check("a change of something else", "owner-two")
		b.label("parent", "many")
		if len(runs) != 2001 || runs[0] != "owner-two" || runs[1] != "owner-0" || runs[2000] != "owner-1999" {
			t.Errorf("%d runs for 2001 owners", len(runs))
		}
		runs = nil
		b.label("parent", "1999")
		if len(runs) != 2000 {
			t.Errorf("%d runs for 2000 owners, one of which stays", len(runs))
		}
		runs = nil
		if err := client.For[*corev1.Pod](b.client).Delete(t.Context(), key("parent")); err != nil {
			t.Fatal(err)
		}
		check("a deletion", "owner-1999")
	})
}

// A mapping that panics for one state of an object is called for the other all the same.
func TestAMappingThatPanicsForTheOldStateIsCalledForTheNewOne(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var runs []string
		c := controller.NewKeyed("panicking", func(_ context.Context, req controller.RequestOf[string]) (controller.Result, error) {
			runs = append(runs, req.Key)
			return controller.Result{}, nil
		}, controller.Watches(b.pods, func(pod cache.Item[*corev1.Pod], add func(string)) {
			if pod.Meta().Labels.Get("app") == "" {
				panic("no label")
			}
			add(pod.Meta().Labels.Get("app"))
		}), b.logger())
		defer b.start(c)()
		b.label("parent", "one")
		if p := c.Status(0).Panics["the mapping of pods"]; !slices.Equal(runs, []string{"one"}) || p.Times != 2 || p.Object != "ns/parent" {
			t.Errorf("runs of %v, panics %+v", runs, p)
		}
	})
}

func TestJoinedLoopsEndTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nothing := func(context.Context, controller.RequestOf[string]) (controller.Result, error) {
			return controller.Result{}, nil
		}
		good := controller.NewKeyed("good", nothing, quiet())
		j := controller.Join("both", good, controller.NewKeyed("without workers", nothing, controller.Workers(0), quiet()))
		if err := j.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "without workers: 0 workers") {
			t.Errorf("ended with %v", err)
		}
		good.Queue().Add("late")
		if s := good.Queue().Stats(); s.Ignored != 1 {
			t.Error("the other loop runs on")
		}
		var names []string
		for _, l := range j.(interface{ Loops() []controller.Loop }).Loops() {
			names = append(names, l.Name())
		}
		if !slices.Equal(names, []string{"good", "without workers"}) {
			t.Errorf("loops %v", names)
		}
	})
}
