// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// The record costs no allocation for a run that writes nothing: the whole loop allocates as much with it as without it.
func TestARunThatWritesNothingIsRecordedWithoutAllocation(t *testing.T) {
	for _, c := range []struct {
		name string
		keys int
	}{{"one key", 1}, {"2,000 keys", 2000}} {
		t.Run(c.name, func(t *testing.T) {
			record, err := runs.New(runs.DefaultBytes)
			if err != nil {
				t.Fatal(err)
			}
			off := allocationsOf(t, c.keys)
			on := allocationsOf(t, c.keys, controller.Runs(record))
			if s := record.Stats(); s.Runs < measuredRuns {
				t.Fatalf("the record has %d runs, want the %d that were measured", s.Runs, measuredRuns)
			}
			record.Observe(func(runs.Run) {}) // which gets a copy of each run
			observed := allocationsOf(t, c.keys, controller.Runs(record))
			t.Logf("allocations of %d runs: %.0f without a record, %.0f with one, %.0f with an observer", measuredRuns, off, on, observed)
			// The runtime itself allocates now and then; one allocation a run would be a difference of measuredRuns.
			if on-off > measuredRuns/50 {
				t.Errorf("%d runs allocate %.0f times with a record and %.0f times without one", measuredRuns, on, off)
			}
			if observed-on < measuredRuns {
				t.Errorf("%d runs allocate %.0f times with an observer and %.0f times without one: the measure sees no allocations", measuredRuns, observed, on)
			}
		})
	}
}

const measuredRuns = 4000

// allocationsOf returns how often a loop allocates in measuredRuns runs that do nothing, once every key has run.
func allocationsOf(t *testing.T, keys int, options ...controller.Option) float64 {
	t.Helper()
	done := make(chan struct{})
	c := controller.New("bench", func(context.Context, controller.Request) (controller.Result, error) {
		done <- struct{}{}
		return controller.Result{}, nil
	}, append(options, quiet())...)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	adds := make([]workqueue.Add, keys)
	of := make([]object.Key, keys)
	for i := range keys {
		of[i] = object.Key{Namespace: "shop", Name: fmt.Sprint("web-", i)}
		adds[i].Cause = workqueue.Cause{Source: "deployments", Verb: workqueue.Updated, From: "4710", Version: "4711",
			Ref: object.Ref{Group: "apps", Kind: "Deployment", Key: of[i], UID: "0c9a4c0e-5a3e-4f57-9d8f-1f2e3d4c5b6a"}}
	}
	run := func(n int) {
		for i := range n {
			c.Queue().AddWith(adds[i%keys], of[i%keys])
			<-done
		}
	}
	run(2 * keys) // the first run of a key has an entry of its own
	allocations := testing.AllocsPerRun(3, func() { run(measuredRuns) })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return allocations
}
