// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
)

// Impatient shortens the wait for own writes after which the server is asked.
func Impatient(c *Controller, d time.Duration) { c.own.patience = d }

// Ask reads once from the server what became of a write, and returns what the informer must
// show then.
func Ask(ctx context.Context, c *Controller, informer cache.Handle, write client.Write) ([]client.Write, error) {
	w := unseenWrite{Write: write, informer: informer}
	now, err := w.ask(ctx, c)
	var all []client.Write
	for _, one := range now {
		all = append(all, one.Write)
	}
	return all, err
}

// NeedNot reads once from the server whether an informer may be used though it has not seen a
// write.
func NeedNot(ctx context.Context, c *Controller, informer cache.Handle, write client.Write) bool {
	w := unseenWrite{Write: write, informer: informer}
	return w.needNot(ctx, c)
}
