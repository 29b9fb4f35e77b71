// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/object"
)

func TestLoopMeasuresBothSides(t *testing.T) {
	var out strings.Builder
	args := []string{"loop", "--objects", "200", "--events", "200", "--paced", "50", "--rate", "5000", "--turns", "1", "--writes", "0", "--workers", "2"}
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"noop-reconciles-per-second", "noop-cpu-per-reconcile", "noop-event-to-reconcile-p50", "noop-event-to-reconcile-p99",
		"reading-reconciles-per-second", "reading-cpu-per-reconcile",
	} {
		_, line, found := strings.Cut(out.String(), "\n"+name+" ")
		line, _, _ = strings.Cut(line, "\n")
		if !found || strings.Contains(line, "setpoint=-") || strings.Contains(line, "peer=-") || strings.Contains(line, "peer=none") {
			t.Errorf("%s: %q is no measure of both sides, in\n%s", name, line, out.String())
		}
	}
}

func TestLoopMeasuresWhatTheRecordCosts(t *testing.T) {
	var out strings.Builder
	args := []string{"loop", "--record", "--objects", "50", "--events", "50", "--paced", "1", "--turns", "1", "--writes", "0"}
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"noop-reconciles-per-second", "noop-cpu-per-reconcile", "reading-cpu-per-reconcile"} {
		_, line, found := strings.Cut(out.String(), "\n"+name+" ")
		line, _, _ = strings.Cut(line, "\n")
		if !found || strings.Contains(line, "setpoint=0") || strings.Contains(line, "ratio=0.00") || strings.Contains(line, "peer=none") {
			t.Errorf("%s: %q is no measure of both sides, in\n%s", name, line, out.String())
		}
	}
}

func TestLoopSaysWhatIsWrongWithItsArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"loop", "--objects", "10", "--events", "11"}, "--events 11"},
		{[]string{"loop", "--rate", "0"}, "--rate 0"},
		{[]string{sideCase, `{"Case":"loop","Side":"client-go","Kind":"pods"}`}, "there is none of client-go for pods"},
		{[]string{sideCase, `{"Case":"loop-write","Side":"setpoint","Kind":"configmaps","Kubeconfig":"none"}`}, "measuring writes"},
	} {
		var out strings.Builder
		if err := run(t.Context(), c.args, &out); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one with %q", c.args, err, c.want)
		}
	}
}

func TestReconcileThatFailsEndsTheMeasurement(t *testing.T) {
	failure := errors.New("no such luck")
	for _, side := range []string{setpointSide, controllerRuntimeSide} {
		t.Run(side, func(t *testing.T) {
			path, err := record(podKind, 3, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			tape, err := load(podKind, path)
			if err != nil {
				t.Fatal(err)
			}
			r, err := newReplay(tape, 3)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err = serve(ctx, r, func(address string) error {
				s := &sideSpec{Case: "loop", Side: side, Kind: "pods", Server: address, Objects: 3, Workers: 1}
				from, err := s.server()
				if err != nil {
					return err
				}
				l, err := newLoop(s, from.config, func(context.Context, object.Key, loopObjects) error { return failure })
				if err != nil {
					return err
				}
				stop := l.start(ctx)
				defer func() { _ = stop() }()
				return until(ctx, "the failure", func() (bool, error) { return false, l.failure() })
			})
			if !errors.Is(err, failure) {
				t.Errorf("error %v, want that of the reconcile", err)
			}
		})
	}
}

func TestPaceKeepsItsRateWhenOneIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		err := pace(t.Context(), 5, 10, func(i int) error {
			at = append(at, time.Since(began))
			if i == 1 {
				time.Sleep(250 * time.Millisecond)
			}
			return nil
		})
		want := []int64{0, 100, 350, 350, 400}
		for i := range want {
			if err != nil || len(at) != len(want) || at[i].Milliseconds() != want[i] {
				t.Fatalf("error %v, called at %v, want %v ms", err, at, want)
			}
		}
	})
}

func TestQuantile(t *testing.T) {
	all := make([]float64, 100)
	for i := range all {
		all[len(all)-1-i] = float64(i)
	}
	for share, want := range map[float64]float64{0: 0, 0.5: 50, 0.99: 99, 1: 99} {
		if got := quantile(all, share); got != want {
			t.Errorf("%v of 0 to 99: %v, want %v", share, got, want)
		}
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("of nothing: %v, want 0", got)
	}
}
