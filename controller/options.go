// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// An Option changes a controller in the making: a [Setting], or something about its keys,
// such as where they come from.
type Option interface{ apply(*Controller) }

// A Setting is an Option that concerns no keys, and that every loop takes therefore.
type Setting func(*core)

func (s Setting) apply(c *Controller) { s(&c.core) }

// keysOption is an Option about the keys of objects.
type keysOption func(*Controller)

func (o keysOption) apply(c *Controller) { o(c) }

// Workers is how many keys are worked on at a time. The default is 1.
func Workers(n int) Setting { return func(c *core) { c.workers = n } }

// MaxRetries gives a key up when it has failed once and that many times more in a row:
// it is left alone until something changes, which the log says as an error. A run without
// an error ends the row, also one that asks for [Result.Again]. The default, 0, is never.
func MaxRetries(n int) Setting { return func(c *core) { c.maxRetries = n } }

// Timeout ends the context of a run after a time. The run has failed if it returns an
// error then, and is tried again as after any other. The default, 0, is never.
func Timeout(d time.Duration) Setting { return func(c *core) { c.timeout = d } }

// Resync has every object of each [For] looked at again in this period, changed or not,
// after all that did change. The default, 0, is never; below a second is a second.
func Resync(period time.Duration) Setting { return func(c *core) { c.resync = period } }

// Grace is how long runs that are under way may take to finish when the controller
// stops. The default is 10 s.
func Grace(d time.Duration) Setting { return func(c *core) { c.grace = d } }

// Log gives the controller a logger. The default is that of the manager that the
// controller is added to, or slog.Default.
func Log(l *slog.Logger) Setting { return func(c *core) { c.log = l } }

// Reads names an informer that the Reconciler reads and that starts no run: the
// controller waits for its first state, and for own writes of its kind to appear
// in it.
func Reads[T object.Object](informer cache.SharedInformer[T]) Setting {
	return func(c *core) { c.knows(informer.Handle()) }
}

// ReadStale switches off the wait for own writes.
func ReadStale() Setting { return func(c *core) { c.staleReads = true } }

// WriteWait is how long a key is held back at most for what its last run wrote. When it
// is over the key is let go, and the next run is told in [RequestOf.Unseen] what it may not
// find in the informers. The default is 5 minutes.
func WriteWait(most time.Duration) Setting { return func(c *core) { c.writeWait = most } }

// OnGivingUp has f called with the request and the error of the last run when a key is
// given up, after [MaxRetries] or for a [Terminal] error: to record an event, say. The log
// says it all the same. f is called by a worker, which waits for it.
func OnGivingUp(f func(Request, error)) Option {
	return keysOption(func(c *Controller) { c.givingUp = f })
}

// RateLimit says how long a failed key waits. The default is
// workqueue.DefaultLimiter.
func RateLimit(l workqueue.Limiter[object.Key]) Option {
	return keysOption(func(c *Controller) { c.limiter = l })
}

// Fair has the namespaces that have keys take turns: one with 100,000 keys does not delay one
// with a single key. Without it keys come in order of arrival. Priorities are kept either way.
func Fair() Option {
	return keysOption(func(c *Controller) { c.group = func(key object.Key) string { return key.Namespace } })
}

// CheckWorkers returns an error for a number of workers that does no work.
func CheckWorkers(n int) error {
	if n < 1 {
		return fmt.Errorf("%d workers; want 1 or more", n)
	}
	return nil
}
