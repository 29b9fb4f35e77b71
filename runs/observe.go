// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"fmt"
	"slices"

	"github.com/setpoint-io/setpoint/object"
)

// Observe has the record call a function with each run that ends from now on. A run that the record counts in an earlier
// one is observed too, with a number, causes and times of its own. The worker of the loop calls the function, so it must
// return at once, and several workers call it at the same time. The function may keep the Run. A record has one observer:
// a second call replaces the first function, and nil removes it.
func (r *Record) Observe(observe func(Run)) {
	if observe == nil {
		r.observer.Store(nil)
		return
	}
	r.observer.Store(&observe)
}

// observed returns a run for the observer. It copies what belongs to the queue or to the reconciler.
func observed[K comparable](l *Loop, key K, run *Ended, number uint64) Run {
	o := Run{
		Number: number, Controller: l.controller, Key: fmt.Sprint(key),
		More: run.Causes.Dropped(), Attempt: run.Attempt, Began: run.Began, Took: run.Took,
		Wait:    Wait{Delay: run.Delayed, Before: run.Before, Queue: run.Queued, Priority: run.Priority},
		Outcome: run.Outcome, Error: run.Error, Writes: slices.Clone(run.Writes), Reasons: slices.Clone(run.Reasons),
		Runs: 1, Last: run.Began, Contexts: run.Contexts,
	}
	for c := range run.Causes.All() {
		o.Causes = append(o.Causes, Cause{Source: c.Source, Verb: c.Verb, Object: ObjectOf(c.Ref), From: c.From, Version: c.Version})
	}
	if len(o.Causes) > 0 {
		o.LastVersion = o.Causes[0].Version
	}
	if objectKey, isObject := any(key).(object.Key); isObject && l.kind != "" {
		o.Object = Object{Group: l.group, Kind: l.kind, Namespace: objectKey.Namespace, Name: objectKey.Name}
	}
	if run.Next > 0 {
		next := run.Began.Add(run.Took + run.Next)
		o.NextLook = &next
	}
	return o
}
