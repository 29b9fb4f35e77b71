// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Feed has f run in a goroutine of its own for as long as the controller works, to
// add keys for reasons that no informer knows: what comes from a channel, say. name
// says in the causes of a run where its key came from. f returns when its context
// ends. One that panics is logged, with its stack, and begun anew a second later.
func Feed(name string, f func(ctx context.Context, add func(object.Key))) Option {
	return func(c *Controller) {
		c.sources = append(c.sources, func(c *Controller) (func(), error) {
			ctx, cancel := context.WithCancel(context.Background())
			how := workqueue.Add{Cause: workqueue.Cause{Source: name, Verb: "Fed"}}
			add := func(key object.Key) { c.queue.AddWith(how, key) }
			var task sync.WaitGroup
			task.Go(func() {
				for !c.feed(ctx, name, f, add) {
					select {
					case <-time.After(time.Second):
					case <-ctx.Done():
					}
				}
			})
			return func() { cancel(); task.Wait() }, nil
		})
	}
}

// feed calls f once and reports whether it came to its end.
func (c *Controller) feed(ctx context.Context, name string, f func(context.Context, func(object.Key)), add func(object.Key)) (ended bool) {
	defer func() {
		if p := recover(); p != nil {
			c.contain("the feed "+name, "it begins anew", "", p)
			ended = ctx.Err() != nil
		}
	}()
	f(ctx, add)
	return true
}

// Periodically has keys looked at when the controller starts and then in each
// period, changed or not.
func Periodically(period time.Duration, keys ...object.Key) Option {
	return Feed("every "+period.String(), func(ctx context.Context, add func(object.Key)) {
		ticker := time.NewTicker(period)
		defer ticker.Stop()
		for {
			for _, key := range keys {
				add(key)
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	})
}
