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

// Request asks for an object to be looked at.
type Request = RequestOf[object.Key]

// RequestOf asks for what belongs to a key to be looked at.
type RequestOf[K comparable] struct {
	Key K
	// Causes says why. It is valid during the run.
	Causes workqueue.Causes
	// Attempt counts the runs for this key that failed or asked to come again, since the
	// last that did neither.
	Attempt int
	// Unseen are writes of earlier runs for this key that the informers still do not
	// show after the longest wait ([WriteWait]). There are none but where a watch has
	// been broken for minutes. A Reconciler that makes objects under generated names
	// reads from the server then, or leaves it for later: what it finds missing in the
	// informers may be there.
	Unseen []client.Write

	loop *Keyed[K] // nil: nobody runs it
}

// Enqueue has the loop look at other keys, or at the key of this very run once more when it
// has ended. They carry the run as their cause. It may be called from any goroutine, also
// after the run; a loop that stops takes no further keys. A request that no loop has made, as
// a test may, enqueues nothing.
func (r RequestOf[K]) Enqueue(keys ...K) {
	if r.loop == nil {
		return
	}
	cause := workqueue.Cause{Source: r.loop.name + " for " + textOf(r.Key), Verb: workqueue.Enqueued}
	r.loop.queue.AddWith(workqueue.Add{Cause: cause}, keys...)
}

// textOf is a key for people.
func textOf[K comparable](key K) string { return fmt.Sprint(key) }

// Result says what comes next after a run without error. The zero Result is
// nothing until something changes.
type Result struct {
	// After asks for another run after this time. 0 is none.
	After time.Duration
	// Again asks for another run when the rate limit allows it, each time later, as after
	// an error, where nothing went wrong and nobody knows how long it takes. It is not
	// given up. After goes before it.
	Again bool
}

// Reconciler makes one object as it should be. See the package's documentation
// for what it may rely on.
type Reconciler func(context.Context, Request) (Result, error)

// Terminal marks an error that trying again cannot mend. The key is given up: left alone
// until one of its objects changes.
func Terminal(err error) error { return &terminalError{err} }

type terminalError struct{ error }

func (e *terminalError) Unwrap() error { return e.error }

func isTerminal(err error) bool {
	var t *terminalError
	return errors.As(err, &t)
}
