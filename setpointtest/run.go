// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package setpointtest

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Run runs r in a goroutine until the test ends. r is a *manager.Manager, or anything else that
// runs until its context ends. The test fails if r returns an error, if it returns before the
// test ends, or if it does not stop within half a minute. Run may be called in a bubble of
// testing/synctest.
func Run(t testing.TB, r interface{ Run(context.Context) error }) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := r.Run(ctx)
		if err == nil && ctx.Err() == nil {
			err = errors.New("it ended before the test")
		}
		if err != nil {
			t.Errorf("running a %T: %v", r, err) // at once, since the test may be waiting for r
		}
	}()
	t.Cleanup(func() {
		stop()
		timer := time.NewTimer(stopTimeout)
		defer timer.Stop()
		select {
		case <-ended:
		case <-timer.C:
			t.Errorf("stopping a %T: not done within %s", r, stopTimeout)
		}
	})
}
