// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/internal/pause"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Feed runs f in a goroutine of its own while the loop runs, to enqueue keys for reasons that
// no informer knows: keys that come from a channel, say. name is the source of the keys in the
// causes of their runs. f returns when its context ends. If f panics, the loop logs the panic
// with its stack, and calls f again a second later. Feed must not be called after Run.
func (c *Keyed[K]) Feed(name string, f func(ctx context.Context, add func(K))) {
	c.feeds = append(c.feeds, func() (func(), error) {
		ctx, cancel := context.WithCancel(context.Background())
		how := workqueue.Add{Cause: workqueue.Cause{Source: name, Verb: workqueue.Fed}}
		add := func(key K) { c.queue.AddWith(how, key) }
		var task sync.WaitGroup
		task.Go(func() {
			for !c.feed(ctx, name, f, add) {
				pause.For(ctx, time.Second)
			}
		})
		return func() { cancel(); task.Wait() }, nil
	})
}

// feed calls f once and reports whether it returned.
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

// Periodically enqueues keys when the loop starts and then once in each period. It must not
// be called after Run.
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
