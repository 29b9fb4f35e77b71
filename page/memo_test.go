// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestViewersOfOneViewCostOneComputation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m memo
		computed := 0
		compute := func(context.Context) (int, error) {
			time.Sleep(100 * time.Millisecond)
			computed++
			return computed, nil
		}
		first, leave := context.WithCancel(t.Context())
		var viewers sync.WaitGroup
		for range 10 {
			viewers.Go(func() {
				if n, err := of(first, &m, "web", compute); err == nil && n != 1 {
					t.Errorf("a viewer gets %d", n)
				}
			})
		}
		synctest.Wait()
		leave() // the computation does not end with the request that began it
		viewers.Wait()
		if n, err := of(t.Context(), &m, "web", compute); n != 1 || err != nil || computed != 1 {
			t.Errorf("the next viewer gets %d, %v, and the view was computed %d times", n, err, computed)
		}
		if n, err := of(t.Context(), &m, "db", compute); n != 2 || err != nil {
			t.Errorf("the viewer of another view gets %d, %v", n, err)
		}
		time.Sleep(memoLasts + time.Millisecond)
		if n, err := of(t.Context(), &m, "web", compute); n != 3 || err != nil {
			t.Errorf("a second later the view is %d, %v", n, err)
		}
	})
}

func TestAViewerThatLeavesDoesNotWaitForAComputation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m memo
		go func() {
			_, _ = of(t.Context(), &m, "web", func(context.Context) (int, error) { time.Sleep(time.Second); return 1, nil })
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := of(ctx, &m, "web", func(context.Context) (int, error) { return 2, nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		time.Sleep(time.Second)
	})
}
