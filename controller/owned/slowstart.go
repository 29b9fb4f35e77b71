// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package owned

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// batchMost is how many calls of a slow start run at the same time.
// Source: k8s.io/kubernetes/pkg/controller/statefulset, MaxBatchSize.
const batchMost = 500

// SlowStart calls f count times, in batches that double: initial calls, twice as many, and
// so on, up to 500 calls. The calls of a batch run at the same time. SlowStart stops after the first batch
// with an error, so a create that cannot succeed, because a quota is used up, say, costs a
// few requests and not hundreds. It returns how many calls succeeded, and the first error.
//
// Source of the method: k8s.io/kubernetes/pkg/controller/replicaset,
// slowStartBatch.
func SlowStart(ctx context.Context, count, initial int, f func(context.Context, int) error) (int, error) {
	succeeded := 0
	for begin, batch := 0, min(count, max(initial, 1), batchMost); batch > 0; batch = min(2*batch, count-begin, batchMost) {
		errs := Batch(ctx, batch, func(ctx context.Context, i int) error { return f(ctx, begin+i) })
		succeeded += batch - len(errs)
		if len(errs) > 0 {
			return succeeded, errs[0]
		}
		begin += batch
	}
	return succeeded, nil
}

// Batch calls f count times at the same time and returns the errors. If a call panics, Batch
// panics too, after all calls have returned. The panic is then one of the goroutine that
// called Batch, where a controller contains it.
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

// Stack returns the stack of the goroutine that panicked. The loop logs it.
func (p *carriedPanic) Stack() []byte { return p.stack }
