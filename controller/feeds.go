// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/workqueue"
)

// Feed has f run in a goroutine of its own for as long as the loop works, to add keys for
// reasons that no informer knows: what comes from a channel, say. name says in the causes of
// a run where its key came from. f returns when its context ends. One that panics is logged,
// with its stack, and begun anew a second later. Feed must not be called after Run.
func (c *Keyed[K]) Feed(name string, f func(ctx context.Context, add func(K))) {
	c.sources = append(c.sources, func() (func(), error) {
		ctx, cancel := context.WithCancel(context.Background())
		how := workqueue.Add{Cause: workqueue.Cause{Source: name, Verb: workqueue.Fed}}
		add := func(key K) { c.queue.AddWith(how, key) }
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

// feed calls f once and reports whether it came to its end.
func (c *Keyed[K]) feed(ctx context.Context, name string, f func(context.Context, func(K)), add func(K)) (ended bool) {
	defer func() {
		if p := recover(); p != nil {
			c.contain("the feed "+name, "it begins anew", "", p)
			ended = ctx.Err() != nil
		}
	}()
	f(ctx, add)
	return true
}

// Periodically has keys looked at when the loop starts and then in each period, changed or
// not. It must not be called after Run.
func (c *Keyed[K]) Periodically(period time.Duration, keys ...K) {
	c.Feed("every "+period.String(), func(ctx context.Context, add func(K)) {
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
