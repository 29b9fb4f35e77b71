// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"math/rand/v2"
	"time"
)

// How long a reflector waits before it tries again: 0.8 s, doubled up to 30 s,
// with full jitter, and from the start again after two healthy minutes, or after one
// watch that lived for half a minute.
// Source: k8s.io/client-go/tools/cache, NewReflectorWithOptions, except for the last.
const (
	backoffFirst  = 800 * time.Millisecond
	backoffMost   = 30 * time.Second
	backoffFactor = 2
	backoffReset  = 2 * time.Minute
)

// backoff counts failures. It is used by one goroutine.
type backoff struct {
	next   time.Duration
	failed time.Time
	random func() float64 // in [0, 1)
}

// reset has the next pause be the first again: after a watch that lived for longer than
// the longest pause, so that no server is asked more often for it.
func (b *backoff) reset() { b.next = 0 }

// wait sleeps before the next try. It returns early with ctx's error when that
// ends, and without one when early is closed, yet not before an eighth of the longest
// pause that it may be: early may be closed again and again. least is the pause that
// the server requested, 0 if none.
func (b *backoff) wait(ctx context.Context, least time.Duration, early <-chan struct{}) error {
	if now := time.Now(); now.Sub(b.failed) > backoffReset {
		b.next = 0
	}
	if b.next == 0 {
		b.next = backoffFirst
	} else {
		b.next = min(b.next*backoffFactor, backoffMost)
	}
	random := b.random
	if random == nil {
		random = rand.Float64
	}
	// Full jitter keeps many clients of a server that comes back from coming at
	// once; a floor keeps one client from asking a broken server in a loop.
	pause := max(least, time.Duration(random()*float64(b.next)), backoffFirst/8)
	floor := min(pause, max(least, b.next/8))
	defer func() { b.failed = time.Now() }()
	if err := sleep(ctx, floor, nil); err != nil {
		return err
	}
	return sleep(ctx, pause-floor, early)
}

// sleep returns after a time, or when early is closed, or with ctx's error when that ends.
func sleep(ctx context.Context, d time.Duration, early <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-early:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
