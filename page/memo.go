// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"sync"
	"time"
)

// How long a computed value is used, how long computing one may take, and how many are kept.
const (
	memoLasts = 900 * time.Millisecond // less than the time between two live updates
	memoTime  = 10 * time.Second
	memoMost  = 256
)

// memo keeps computed values for a short time, so that all viewers of one view cost one computation. It is safe for
// concurrent use.
type memo struct {
	mu  sync.Mutex
	all map[any]*remembered
}

type remembered struct {
	done  chan struct{} // closed when the other fields are there
	at    time.Time
	value any
	err   error
}

// of returns the value of a key: the last one if it is young, or a new one. Of several callers at a time, one computes.
func of[T any](ctx context.Context, m *memo, key any, compute func(context.Context) (T, error)) (value T, err error) {
	r, mine := m.get(key)
	if mine {
		// Others may wait for the value, so it does not end with the request of the first.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), memoTime)
		defer cancel()
		defer close(r.done)
		value, err = compute(ctx)
		r.value, r.err, r.at = value, err, time.Now()
		return value, err
	}
	select {
	case <-r.done:
		value, _ = r.value.(T)
		return value, r.err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// get returns what is remembered of a key, or a new place for it, which the caller fills.
func (m *memo) get(key any) (r *remembered, mine bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r = m.all[key]; r != nil && !r.old() {
		return r, false
	}
	if m.all == nil {
		m.all = map[any]*remembered{}
	}
	m.forget()
	r = &remembered{done: make(chan struct{})}
	m.all[key] = r
	return r, true
}

// forget drops old values, and all of them if there are too many: the next viewers compute theirs again.
func (m *memo) forget() {
	for key, r := range m.all {
		if r.old() {
			delete(m.all, key)
		}
	}
	if len(m.all) >= memoMost {
		clear(m.all)
	}
}

// old reports whether a value is there and no longer to be used.
func (r *remembered) old() bool {
	select {
	case <-r.done:
		return time.Since(r.at) > memoLasts
	default:
		return false
	}
}
