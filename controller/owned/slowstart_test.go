// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package owned_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/controller/owned"
)

func TestSlowStartDoublesAndStopsAtTheFirstBatchThatFails(t *testing.T) {
	for _, c := range []struct{ count, failAt, wantCalls, wantGood int }{
		{0, -1, 0, 0}, {1, -1, 1, 1}, {10, -1, 10, 10}, {100, 0, 1, 0}, {100, 2, 3, 2}, {100, 3, 7, 6}, {5, 4, 5, 4},
	} {
		var calls atomic.Int64
		good, err := owned.SlowStart(t.Context(), c.count, 1, func(_ context.Context, i int) error {
			calls.Add(1)
			if i == c.failAt {
				return errors.New("no")
			}
			return nil
		})
		if int(calls.Load()) != c.wantCalls || good != c.wantGood || (err != nil) != (c.failAt >= 0) {
			t.Errorf("%+v: %d calls, %d good, %v", c, calls.Load(), good, err)
		}
	}
}

func TestABatchOfASlowStartHasABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most := 0, 0
		step := func(by int) {
			mu.Lock()
			defer mu.Unlock()
			running += by
			most = max(most, running)
		}
		good, err := owned.SlowStart(t.Context(), 3000, 1, func(context.Context, int) error {
			step(1)
			time.Sleep(time.Second)
			step(-1)
			return nil
		})
		if good != 3000 || err != nil || most != 500 {
			t.Errorf("%d of 3000 calls went well, %v; %d ran at the same time", good, err, most)
		}
	})
}
