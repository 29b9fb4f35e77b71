// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Request asks for a run for an object.
type Request = RequestOf[object.Key]

// RequestOf asks for a run for a key.
type RequestOf[K comparable] struct {
	Key K
	// Causes has the reasons of the run. It is valid until the run ends.
	Causes workqueue.Causes
	// Attempt counts the runs for this key that failed or asked for Result.Again, since the
	// last run that did neither.
	Attempt int
	// Unseen has the writes of earlier runs for this key that the informers still do not
	// show after the longest wait ([WriteWait]). It is empty unless a watch has been broken
	// for minutes. A Reconciler that creates objects under generated names then reads from
	// the server, or returns an error: what the informers do not show may exist.
	Unseen []client.Write

	loop *Keyed[K] // nil in a Request that no loop made
}

// Enqueue enqueues other keys, or the key of this run, which then runs again. This run is the
// cause of those runs. Enqueue may be called from any goroutine, also after the run. A loop
// that stops ignores it, and so does a Request that a test made without a loop.
func (r RequestOf[K]) Enqueue(keys ...K) {
	if r.loop == nil {
		return
	}
	cause := workqueue.Cause{Source: r.loop.name + " for " + textOf(r.Key), Verb: workqueue.Enqueued}
	r.loop.queue.AddWith(workqueue.Add{Cause: cause}, keys...)
}

// textOf returns a key as the log and the debug pages show it.
func textOf[K comparable](key K) string { return fmt.Sprint(key) }

// Result says when the key runs again. The zero Result is when something changes. A run with an error is repeated when
// the rate limit allows it.
type Result struct {
	// After asks for another run after this time. 0 is none. It does not count for a run with an error, unless Always is set.
	After time.Duration
	// Always asks for the run after After also if this one fails: the key then runs again when After is over or when the rate
	// limit allows it, whichever is earlier. It is for what time alone changes, such as a deadline, or a Pod
	// that becomes available: a key that has failed for long waits for many minutes otherwise.
	Always bool
	// Again asks for another run when the rate limit allows it, each time later, as after an
	// error. It is for a wait of unknown length in which nothing has failed: [MaxRetries]
	// does not count such runs. After takes precedence.
	Again bool
}

// Reconciler brings one object to its desired state. The package's documentation says what it
// can rely on. A key that keeps failing waits longer after each run, and delays no other key. A
// panic of a Reconciler is an error of its run; [Status] and the log have both.
type Reconciler func(context.Context, Request) (Result, error)

// Terminal marks an error that a retry cannot resolve. The loop gives up the key until one of
// its objects changes.
func Terminal(err error) error { return &terminalError{err} }

type terminalError struct{ error }

func (e *terminalError) Unwrap() error { return e.error }

func isTerminal(err error) bool {
	var t *terminalError
	return errors.As(err, &t)
}
