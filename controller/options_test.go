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

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// shard is a key that is no object.
type shard int

func TestOptionsAboutKeysServeLoopsOverAnyKey(t *testing.T) {
	t.Run("RateLimit, OnGivingUp", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *bubble) {
			began := time.Now()
			var runs, givenUp []time.Duration
			c := controller.NewKeyed("shards", func(_ context.Context, req controller.RequestOf[shard]) (controller.Result, error) {
				runs = append(runs, time.Since(began))
				return controller.Result{}, errors.New("no")
			},
				controller.MaxRetries(2), b.logger(),
				controller.RateLimit(&workqueue.Exponential[shard]{Base: time.Minute}),
				controller.OnGivingUp(func(req controller.RequestOf[shard], err error) {
					if req.Key != 7 || err.Error() != "no" {
						t.Errorf("gave up %v: %v", req.Key, err)
					}
					givenUp = append(givenUp, time.Since(began))
				}))
			c.Queue().Add(7)
			defer b.start(c)()
			time.Sleep(time.Hour)
			synctest.Wait()
			if want := []time.Duration{0, time.Minute, 3 * time.Minute}; !slices.Equal(runs, want) || !slices.Equal(givenUp, want[2:]) {
				t.Errorf("runs at %v, given up at %v", runs, givenUp)
			}
		})
	})
	t.Run("FairBy", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *bubble) {
			var runs []shard
			c := controller.NewKeyed("shards", func(_ context.Context, req controller.RequestOf[shard]) (controller.Result, error) {
				runs = append(runs, req.Key)
				return controller.Result{}, nil
			}, b.logger(), controller.FairBy(func(s shard) string { return string('a' + rune(s/10)) }))
			c.Queue().AddWith(workqueue.Add{}, 1, 2, 3, 11)
			defer b.start(c)()
			if want := []shard{1, 11, 2, 3}; !slices.Equal(runs, want) {
				t.Errorf("the runs are %v, want %v", runs, want)
			}
		})
	})
	t.Run("Watches, Delayed", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *bubble) {
			began := time.Now()
			var runs []time.Duration
			c := controller.NewKeyed("shards", func(_ context.Context, req controller.RequestOf[shard]) (controller.Result, error) {
				runs = append(runs, time.Since(began))
				return controller.Result{}, nil
			}, b.logger(), controller.Delayed(time.Minute, controller.Watches(b.pods, func(_ cache.Item[*corev1.Pod], add func(shard)) { add(1) })))
			defer b.start(c)()
			b.change("parent")
			time.Sleep(time.Hour)
			synctest.Wait()
			if want := []time.Duration{time.Minute}; !slices.Equal(runs, want) {
				t.Errorf("runs at %v, want %v", runs, want)
			}
		})
	})
}

func TestAnOptionAboutOtherKeysIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		nothing := func(context.Context, controller.RequestOf[shard]) (controller.Result, error) {
			return controller.Result{}, nil
		}
		for name, option := range map[string]controller.Option{
			"For": controller.For(b.pods), "Owns": controller.Owns(b.pods), "FairBy": controller.Fair(),
			"RateLimit":  controller.RateLimit(&workqueue.Exponential[object.Key]{}),
			"OnGivingUp": controller.OnGivingUp(func(controller.Request, error) {}),
			"Watches":    controller.Delayed(time.Second, controller.Watches(b.pods, controller.SameKey)),
		} {
			err := controller.NewKeyed("shards", nothing, option).Run(t.Context())
			want := "running controller shards: option " + name + " is for loops over object.Key, and the keys of this loop are controller_test.shard"
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error is %v, want one that says %q", name, err, want)
			}
		}
	})
}
