// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"slices"
	"strings"
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

// Runs that ask to come again are no failures: they neither count for MaxRetries, nor for
// which failures are logged.
func TestRunsThatAskToComeAgainAreNoRetries(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		const again, retries = 8, 3
		runs := 0
		c := controller.New("test", func(context.Context, controller.Request) (controller.Result, error) {
			if runs++; runs <= again {
				return controller.Result{Again: true}, nil
			}
			return controller.Result{}, errors.New("cannot")
		}, controller.MaxRetries(retries), b.logger())
		c.Queue().Add(object.Key{Name: "it"})
		defer b.start(c)()
		time.Sleep(time.Hour)
		synctest.Wait()
		if want := again + 1 + retries; runs != want || c.GivenUp() != 1 {
			t.Errorf("%d runs, %d keys given up; want %d runs: %d that ask to come again, one that fails, %d retries", runs, c.GivenUp(), want, again, retries)
		}
		for _, line := range []string{`failures=1 error=cannot`, `failures=2 error=cannot`, `retries=3 error=cannot`} {
			if !strings.Contains(b.log.String(), line) {
				t.Errorf("the log lacks %s:\n%s", line, b.log.String())
			}
		}
	})
}

// What counts is failures in a row, whatever the limiter counts.
func TestMaxRetriesCountsFailuresInARow(t *testing.T) {
	for name, limiter := range map[string]workqueue.Limiter[object.Key]{
		"a limiter that counts":        &workqueue.Exponential[object.Key]{},
		"a limiter that counts no key": &workqueue.TokenBucket[object.Key]{},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				runs := 0
				c := controller.New("test", func(context.Context, controller.Request) (controller.Result, error) {
					if runs++; runs == 3 {
						return controller.Result{Again: true}, nil
					}
					return controller.Result{}, errors.New("cannot")
				}, controller.MaxRetries(2), controller.RateLimit(limiter), b.logger())
				c.Queue().Add(object.Key{Name: "it"})
				defer b.start(c)()
				time.Sleep(time.Hour)
				synctest.Wait()
				if runs != 6 || c.GivenUp() != 1 {
					t.Errorf("%d runs, %d keys given up; want 6 runs: two failures, one that asks to come again, three failures", runs, c.GivenUp())
				}
				c.Queue().Add(object.Key{Name: "it"}) // something changed: it has its retries again
				time.Sleep(time.Hour)
				synctest.Wait()
				if runs != 9 || c.GivenUp() != 2 {
					t.Errorf("then %d runs, %d times given up; want 9 and 2", runs, c.GivenUp())
				}
			})
		})
	}
}
