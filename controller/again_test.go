// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// A run that asks to come again comes ever later, is never given up, and begins anew once
// a run is done.
func TestARunThatAsksToComeAgainComesEverLater(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var at []time.Duration
		var attempts []int
		began := time.Now()
		c := controller.New("test", func(_ context.Context, req controller.Request) (controller.Result, error) {
			at, attempts = append(at, time.Since(began)), append(attempts, req.Attempt)
			switch len(at) {
			case 5:
				return controller.Result{}, nil
			case 6:
				return controller.Result{Again: true, After: time.Hour}, nil // After goes before
			case 7:
				return controller.Result{Again: true}, errors.New("and so does an error")
			case 8:
				return controller.Result{}, nil
			}
			return controller.Result{Again: true}, nil
		}, controller.RateLimit(&workqueue.Exponential[object.Key]{Base: time.Second, Max: time.Minute}),
			controller.MaxRetries(2), b.logger())
		c.Queue().Add(object.Key{Name: "it"})
		defer b.start(c)()
		time.Sleep(time.Minute)
		synctest.Wait()
		c.Queue().Add(object.Key{Name: "it"})
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		const hour = time.Minute + time.Hour
		want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second, time.Minute, hour, hour + time.Second}
		if !slices.Equal(at, want) || !slices.Equal(attempts, []int{0, 1, 2, 3, 4, 0, 0, 1}) {
			t.Errorf("runs at %v, attempts %v", at, attempts)
		}
		if n := c.GivenUp(); n != 0 {
			t.Errorf("%d keys were given up", n)
		}
	})
}
