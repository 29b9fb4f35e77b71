// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
)

func TestFeedsAddKeysUntilTheControllerStopsAndSurviveAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ticks, fed, begun atomic.Int64
		c := controller.New("feeds",
			func(_ context.Context, r controller.Request) (controller.Result, error) {
				switch r.Key.Name {
				case "tick":
					ticks.Add(1)
				case "fed":
					fed.Add(1)
				}
				return controller.Result{}, nil
			})
		c.Periodically(time.Minute, object.Key{Name: "tick"})
		c.Feed("channel", func(ctx context.Context, add func(object.Key)) {
			if begun.Add(1) == 1 {
				panic("the first time")
			}
			add(object.Key{Name: "fed"})
			<-ctx.Done()
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		time.Sleep(10*time.Minute + time.Second)
		if ticks.Load() != 11 || fed.Load() != 1 || begun.Load() != 2 {
			t.Errorf("ticks %d, fed %d, begun %d; want 11, 1, 2", ticks.Load(), fed.Load(), begun.Load())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
