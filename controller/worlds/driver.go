// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package worlds

import (
	"context"
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/controller"
)

// Driver brings things of type A to the state that values of type D describe. Its Reconcile is the
// reconciler of a loop over the same keys.
type Driver[K comparable, D, A any] struct {
	World *World[K, A]

	// Desired returns the desired state of a key, nil if there is to be no such thing.
	Desired func(ctx context.Context, key K) (*D, error)

	// Observe looks at the actual world. It returns nil if there is no such thing. It is called
	// for a key that is unknown or uncertain, and for one that was not seen for the time Recheck.
	Observe func(ctx context.Context, key K) (*A, error)

	// Next returns the operation that brings actual closer to desired, nil if there is none. nil
	// is what is not to be, and what is not. It must not change its arguments.
	Next func(key K, desired *D, actual *A) *Step[A]

	// Recheck is after how long a thing is observed again although nothing has changed. 0 is
	// never.
	Recheck time.Duration
}

// Step is an operation on one thing.
type Step[A any] struct {
	Name  string        // a verb, such as "create"
	Limit time.Duration // how long it may take; 0 is no limit
	// Do carries it out. It returns the new state, nil if the thing is gone.
	Do func(ctx context.Context) (*A, error)
}

// mostSteps bounds the operations of one run, so that a Next that never ends holds no worker.
const mostSteps = 10

// Codes of the reasons why an operation does not begin.
const (
	codeBackingOff = "OperationBacksOff"
	codeInProgress = "OperationInProgress"
)

// Reconcile runs operations for a key until Next returns none, one of them fails, or one has to
// wait. It is a reconciler for controller.NewKeyed.
func (d Driver[K, D, A]) Reconcile(ctx context.Context, req controller.RequestOf[K]) (controller.Result, error) {
	for range mostSteps {
		actual, err := d.actual(ctx, req.Key)
		if err != nil {
			return controller.Result{}, fmt.Errorf("observing %v: %w", req.Key, err)
		}
		desired, err := d.Desired(ctx, req.Key)
		if err != nil {
			return controller.Result{}, fmt.Errorf("reading what %v should be: %w", req.Key, err)
		}
		step := d.Next(req.Key, desired, actual)
		switch {
		case step == nil && desired == nil && actual == nil:
			d.World.Forget(req.Key)
			return controller.Result{}, nil
		case step == nil:
			return controller.Result{After: d.Recheck}, nil
		}
		turn, err := d.World.Run(ctx, req.Key, step.Name, step.Limit, step.Do)
		if err != nil {
			return controller.Result{}, err
		}
		if turn.State != Free {
			controller.Because(ctx, reasonOf(turn))
			if turn.Operation.Until.IsZero() {
				return controller.Result{Again: true}, nil // it has no limit, and its end starts no run
			}
			return controller.Result{After: max(time.Until(turn.Operation.Until), time.Millisecond)}, nil
		}
	}
	return controller.Result{Again: true}, nil
}

// actual returns what is there, and observes it first if that is needed.
func (d Driver[K, D, A]) actual(ctx context.Context, key K) (*A, error) {
	value, knowledge := d.World.Actual(key)
	known := knowledge == Present || knowledge == Absent
	if stale := d.Recheck > 0 && time.Since(d.World.Seen(key)) >= d.Recheck; !known || stale {
		seen, err := d.Observe(ctx, key)
		if err != nil {
			return nil, err
		}
		if seen == nil {
			d.World.SawNothing(key)
			return nil, nil
		}
		d.World.Saw(key, *seen)
		return seen, nil
	}
	if knowledge == Absent {
		return nil, nil
	}
	return &value, nil
}

// reasonOf says why an operation does not begin.
func reasonOf(turn Turn) controller.Reason {
	o := turn.Operation
	if turn.State != BackingOff {
		return controller.Reason{
			Code: codeInProgress, Text: "the operation {operation} is in progress since {since}",
			Params: controller.With("operation", o.Name, "since", o.Since.UTC().Format(time.RFC3339)), Ends: "the operation ends",
		}
	}
	return controller.Reason{
		Code:   codeBackingOff,
		Text:   "the operation {operation} has failed {failures} {failures?time|times} in a row and is tried again at {time}: {error}",
		Params: controller.With("operation", o.Name, "failures", o.Failures, "time", o.Until.UTC().Format(time.RFC3339), "error", o.Err),
	}
}
