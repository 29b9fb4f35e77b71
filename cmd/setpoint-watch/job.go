// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/watch"
)

// onceWaits is how long --once waits until the watch begins: the server cannot be reached, or
// another process holds the lease.
const onceWaits = 30 * time.Second

// errDone is why the manager ends when everything has been told.
var errDone = errors.New("everything has been told")

// job is the pipeline as the manager runs it. With --once it ends the manager.
type job struct {
	*watch.Pipeline

	once        bool
	end         context.CancelCauseFunc
	begun, done atomic.Bool
	err         error // of Run
}

// Run implements manager.Runnable.
func (j *job) Run(ctx context.Context) error {
	j.begun.Store(true)
	j.err = j.Pipeline.Run(ctx)
	if errors.Is(j.err, syscall.EPIPE) || errors.Is(j.err, errUnread) {
		j.err = nil // the reader of standard output has gone
	}
	if j.err == nil && j.once && ctx.Err() == nil {
		j.done.Store(true)
		j.end(errDone)
	}
	return j.err
}

// limit ends the manager if the watch has not begun after onceWaits. The caller stops the timer.
func (j *job) limit(server string, elected bool) *time.Timer {
	why := fmt.Sprintf("the server %s could not be reached", server)
	if elected {
		why += ", or another process held the lease"
	}
	return time.AfterFunc(onceWaits, func() {
		if !j.begun.Load() {
			j.end(fmt.Errorf("nothing was compared: for %s %s", onceWaits, why))
		}
	})
}

// outcome turns the end of the manager into that of the command.
func (r *runCommand) outcome(ctx context.Context, j *job, err error) error {
	if j.err != nil {
		err = j.err // without the words that the manager puts before it
	}
	_, stopped := cli.SignalOf(ctx)
	if cause := context.Cause(ctx); err == nil && !stopped && !errors.Is(cause, errDone) && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	switch {
	case err != nil || !r.once:
		return err
	case j.Changed():
		r.changed = true
		return cli.StatusError(somethingChanged)
	case stopped && !j.done.Load():
		return errors.New("stopped before everything was compared")
	}
	return nil
}
