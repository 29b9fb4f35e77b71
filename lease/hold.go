// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// hold is what a holder knows of its time. It sends no requests.
type hold struct {
	clock clock
	limit time.Duration // from the sending of a renewal
	ctx   context.Context
	end   context.CancelCauseFunc

	mu    sync.Mutex
	sent  instant // of the last renewal that succeeded
	doubt error   // why the lease may not be ours although its time is not over
	timer *time.Timer
}

func newHold(c clock, limit time.Duration, sent instant) *hold {
	h := &hold{clock: c, limit: limit, sent: sent}
	h.ctx, h.end = context.WithCancelCause(context.Background())
	h.mu.Lock() // the timer may fire before it is noted
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(limit-c().atLeast(sent), h.expire)
	return h
}

// certain returns nil if the lease is held at this moment, or why that is not certain.
func (h *hold) certain() error {
	if h.ctx.Err() != nil {
		return context.Cause(h.ctx)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.doubt != nil {
		return h.doubt
	}
	if age := h.clock().atMost(h.sent); age >= h.limit {
		return fmt.Errorf("%w: the last renewal was sent %s ago, and holds for %s", ErrExpired, age.Round(time.Millisecond), h.limit)
	}
	return nil
}

// confirm notes a renewal that succeeded, by when it was sent.
func (h *hold) confirm(sent instant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.doubt = nil
	if sent.mono < h.sent.mono {
		return
	}
	h.sent = sent
	h.timer.Reset(h.limit - h.clock().atLeast(sent))
}

// suspect has the lease count as not held until it is confirmed.
func (h *hold) suspect(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.doubt = why
}

// expire ends the hold, unless it was renewed while the timer fired.
func (h *hold) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if left := h.limit - h.clock().atLeast(h.sent); left > 0 {
		h.timer.Reset(left)
		return
	}
	h.end(errors.Join(ErrExpired, h.doubt))
}
