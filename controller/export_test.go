// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"maps"
	"time"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
)

// Impatient shortens the wait for own writes after which the server is asked.
func Impatient(c *Controller, d time.Duration) { c.own.patience = d }

// Ask reads once from the server what became of a write, and returns what the informer must
// show then.
func Ask(ctx context.Context, informer cache.Handle, write client.Write) ([]client.Write, error) {
	w := unseenWrite{Write: write, informer: informer}
	now, err := w.ask(ctx)
	var all []client.Write
	for _, one := range now {
		all = append(all, one.Write)
	}
	return all, err
}

// NeedNot reads once from the server whether an informer may be used though it has not seen a
// write.
func NeedNot(ctx context.Context, informer cache.Handle, write client.Write) bool {
	w := unseenWrite{Write: write, informer: informer}
	return w.needNot(ctx)
}

// Waiting returns the keys that are held back, and the write of each that the informers have
// not seen yet, in words.
func (c *Keyed[K]) Waiting() map[K]string {
	c.own.mu.Lock()
	defer c.own.mu.Unlock()
	all := map[K]string{}
	for key, held := range c.own.waiting {
		all[key] = held.text
	}
	return all
}

// Failures returns the keys whose last run failed, and how many runs have failed in all.
func (c *Keyed[K]) Failures() (last map[K]Failure, total uint64) {
	c.failures.mu.Lock()
	defer c.failures.mu.Unlock()
	return maps.Clone(c.failures.last), c.failures.total
}

// GivenUp returns how many times keys have been given up.
func (c *Keyed[K]) GivenUp() uint64 { return c.Status(0).GivenUp }

// Panics returns the panics that have been contained.
func (c *core) Panics() map[string]Panic { return c.panics.all() }

// StandByWith has a loop stand by that keeps few keys before it seeks them anew.
func StandByWith(c *Controller, least int) (end func()) {
	end, err := c.standBy(least)
	if err != nil {
		panic(err)
	}
	return end
}
