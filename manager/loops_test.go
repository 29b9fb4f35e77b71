// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/object"
)

func TestEachLoopOfAControllerShowsEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		m, err := manager.New(podServer(t).Config(), manager.Serve(l, serving.Options{Plain: true}), manager.Instance("a"))
		if err != nil {
			t.Fatal(err)
		}
		pods := cache.Informer[*corev1.Pod](m)
		held := make(chan struct{})
		stuck := func(context.Context, controller.Request) (controller.Result, error) {
			<-held
			return controller.Result{}, nil
		}
		p := controller.Join("pair", controller.New("pair-one", stuck, controller.For(pods)), controller.New("pair-two", stuck, controller.For(pods)))
		if err := m.Add(p); err != nil {
			t.Fatal(err)
		}
		if err := m.Add(controller.New("pair-two", stuck, controller.For(pods))); err == nil || !strings.Contains(err.Error(), "pair has a loop named pair-two too") {
			t.Errorf("a second loop of one name: %v", err)
		}
		ended, stop := ending(t, m)
		time.Sleep(time.Minute)
		for path, wants := range map[string][]string{
			"/debug/controllers":                     {"\npair-one\n", "\npair-two\n", "ns/a"},
			"/debug/controllers?controller=pair-two": {"\npair-two\n"},
			"/debug/controllers?controller=pair":     {"\npair-one\n", "\npair-two\n"},
			"/metrics": {
				`workqueue_depth{name="pair-one"}`, `workqueue_depth{name="pair-two"}`,
				`setpoint_controller_failures_total{controller="pair-one"}`, `setpoint_controller_failures_total{controller="pair-two"}`,
			},
		} {
			code, text := l.get(t, false, path, "")
			for _, want := range wants {
				if code != http.StatusOK || !strings.Contains(text, want) {
					t.Errorf("%s lacks %q: %d", path, want, code)
				}
			}
		}
		stop()
		says(t, within(t, ended, time.Now(), limit), "pair (working on ns/a for 1m12s in pair-one, ns/a for 1m12s in pair-two)")
		close(held)
	})
}

// cell is a key that is no object.
type cell struct{ row, column int }

func (c cell) String() string { return fmt.Sprintf("cell %d-%d", c.row, c.column) }

// The second of two joined loops, whose keys are no objects, is not less visible than the
// first: what fails and panics in it, what it has to do and what a stop waits for.
func TestTheSecondLoopOfAControllerIsSeenWhateverItsKeysAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		m, err := manager.New(podServer(t).Config(), manager.Serve(l, serving.Options{Plain: true}), manager.Instance("a"))
		if err != nil {
			t.Fatal(err)
		}
		pods := cache.Informer[*corev1.Pod](m)
		held := make(chan struct{})
		cells := controller.NewKeyed("table-cells", func(_ context.Context, req controller.RequestOf[cell]) (controller.Result, error) {
			switch req.Key.column {
			case 1:
				return controller.Result{}, controller.Terminal(errors.New("the ink is dry"))
			case 2:
				panic("torn")
			}
			<-held
			return controller.Result{}, nil
		}, controller.Reads(pods))
		for column := range 5 {
			cells.Queue().Add(cell{7, (column + 1) % 5})
		}
		fine := func(context.Context, controller.Request) (controller.Result, error) { return controller.Result{}, nil }
		if err := m.Add(controller.Join("table", controller.New("table-rows", fine, controller.For(pods)), cells)); err != nil {
			t.Fatal(err)
		}
		ended, stop := ending(t, m)
		time.Sleep(time.Minute)
		for path, wants := range map[string][]string{
			"/debug/controllers?controller=table-cells": {
				"\ntable-cells\n", "  cell 7-3  worked on, since", "  cell 7-4  ready, since", ", 1 given up, 1 panics\n",
				"  cell 7-1  given up", "the ink is dry", "  cell 7-2  ready, since", "  cell 7-2  panic of the reconciler, 1 times", "torn",
			},
			"/metrics": {
				`workqueue_depth{name="table-cells"} 3`, `setpoint_controller_failures_total{controller="table-cells"} 2`,
				`setpoint_controller_given_up_total{controller="table-cells"} 1`, `setpoint_controller_panics_total{controller="table-cells"} 1`,
				`setpoint_controller_failures_total{controller="table-rows"} 0`,
			},
		} {
			code, text := l.get(t, false, path, "")
			for _, want := range wants {
				if code != http.StatusOK || !strings.Contains(spaces.ReplaceAllString(text, "  "), want) {
					t.Errorf("%s lacks %q: %d\n%s", path, want, code, text)
				}
			}
		}
		stop()
		says(t, within(t, ended, time.Now(), limit), "table (working on cell 7-3 for", "in table-cells)")
		close(held)
	})
}

// spaces are those between the columns of a page.
var spaces = regexp.MustCompile(`  +`)

// A new leader waits for the informers of each loop to have seen the last writes of the one
// before.
func TestTheSecondLoopOfAControllerIsWaitedForAtAHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := podServer(t)
		first := startReplica(t, server, "first")
		time.Sleep(time.Minute)
		m, err := manager.New(&rest.Config{Host: "http://in-memory", Transport: server}, manager.Instance("second"), manager.LeaderElection(locked))
		if err != nil {
			t.Fatal(err)
		}
		pods := cache.Informer[*corev1.Pod](m)
		saw := make(chan string, 1)
		idle := controller.NewKeyed("table-rows", func(context.Context, controller.RequestOf[int]) (controller.Result, error) {
			return controller.Result{}, nil
		})
		cells := controller.NewKeyed("table-cells", func(context.Context, controller.RequestOf[cell]) (controller.Result, error) {
			pod, err := pods.Get(object.Key{Namespace: "ns", Name: "a"})
			if err == nil {
				saw <- pod.Labels["run"]
			}
			return controller.Result{}, err
		}, controller.Reads(pods))
		cells.Queue().Add(cell{})
		if err := m.Add(controller.Join("table", idle, cells)); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		time.Sleep(time.Minute)
		server.Of(podsResource).HoldWatches(true) // the last write does not reach the second yet
		time.Sleep(2 * time.Second)
		wrote := fmt.Sprint(first.runs.Load())
		first.stop()
		time.AfterFunc(100*time.Millisecond, func() { server.Of(podsResource).HoldWatches(false) })
		if err := first.end(t); err != nil {
			t.Error(err)
		}
		if run := <-saw; run != wrote {
			t.Errorf("the second loop saw run %q, and %q was the last of the leader before", run, wrote)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
