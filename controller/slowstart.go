// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// SlowStart calls f count times, in batches that double: initial, twice that, and
// so on, each batch at once. It stops after the first batch with an error, so that
// what cannot work, a quota that is used up, say, costs a few requests and not
// hundreds. It returns how many calls succeeded, and the first error.
//
// Source of the method: k8s.io/kubernetes/pkg/controller/replicaset,
// slowStartBatch.
func SlowStart(ctx context.Context, count, initial int, f func(context.Context, int) error) (int, error) {
	succeeded := 0
	for begin, batch := 0, min(count, max(initial, 1)); batch > 0; batch = min(2*batch, count-begin) {
		errs := Batch(ctx, batch, func(ctx context.Context, i int) error { return f(ctx, begin+i) })
		succeeded += batch - len(errs)
		if len(errs) > 0 {
			return succeeded, errs[0]
		}
		begin += batch
	}
	return succeeded, nil
}

// Batch calls f count times at once and returns the errors. If f panics, so does Batch
// when all calls have ended: in the goroutine of its caller, a Reconciler, say, whose
// panics are contained.
func Batch(ctx context.Context, count int, f func(context.Context, int) error) []error {
	var (
		mu   sync.Mutex
		errs []error
		all  sync.WaitGroup

		panicked *carriedPanic // the first
	)
	for i := range count {
		all.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					carried := &carriedPanic{p, debug.Stack()}
					mu.Lock()
					defer mu.Unlock()
					if panicked == nil {
						panicked = carried
					}
				}
			}()
			if err := f(ctx, i); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	all.Wait()
	if panicked != nil {
		panic(panicked)
	}
	return errs
}

// carriedPanic is a panic on its way from one goroutine to another, with the stack of
// the first.
type carriedPanic struct {
	value any
	stack []byte
}

func (p *carriedPanic) String() string { return fmt.Sprint(p.value) }
