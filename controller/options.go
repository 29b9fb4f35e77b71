// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"log/slog"
	"reflect"
	"time"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// An Option configures a loop. [New] and [NewKeyed] take the same options. By purpose:
//
//   - Which keys run: [For], [Owns], [Watches], [SameKey], [Delayed], [Resync], [Predicate].
//   - What a run sees: [Reads], [WriteWait].
//   - How many runs at a time, in which order: [Workers], [Fair], [FairBy].
//   - When a run has failed, and what follows: [Timeout], [RateLimit], [MaxRetries], [OnGivingUp].
//   - The rest: [Grace] for a stop, [Log], [Shows] for debug pages.
//
// An option about keys, such as [For] or [RateLimit], fits the loops over keys of one type. A
// loop over other keys is refused by the manager that it is added to, and by Run.
type Option func(*core)

// over returns the option that configures a loop over keys of type K. name is that of the
// option, for the error.
func over[K comparable](name string, configure func(*Keyed[K])) Option {
	return func(c *core) {
		loop, ok := c.loop.(*Keyed[K])
		if !ok {
			c.refuse("option %s is for loops over %s, and the keys of this loop are %s", name, reflect.TypeFor[K](), c.keys)
			return
		}
		configure(loop)
	}
}

// Workers is how many keys the loop reconciles at the same time. The default is 1.
func Workers(n int) Option { return func(c *core) { c.workers = n } }

// MaxRetries gives up a key when a run has failed and n retries in a row have failed too. The
// loop leaves the key alone until something changes, and logs an error. A run without an error
// ends the row, also a run that asks for [Result.Again]. The default, 0, never gives up.
func MaxRetries(n int) Option { return func(c *core) { c.maxRetries = n } }

// Timeout ends the context of a run after d. If the run then returns an error, the loop retries
// it as after any other error. The default, 0, is no timeout.
func Timeout(d time.Duration) Option { return func(c *core) { c.timeout = d } }

// Resync enqueues every object of each [For] once in each period, changed or not, with a lower
// priority than changes. The default, 0, is never; a period below a second is a second.
func Resync(period time.Duration) Option { return func(c *core) { c.resync = period } }

// Grace is how long the runs in progress may take to finish when the controller stops. The
// default is 10 s.
func Grace(d time.Duration) Option { return func(c *core) { c.grace = d } }

// Log is the logger of the loop. The default is the logger of the manager that the controller
// is added to, or slog.Default.
func Log(l *slog.Logger) Option { return func(c *core) { c.log = l } }

// Reads names an informer that the Reconciler reads and that enqueues no keys. The loop waits
// for its first list, and for own writes of its kind to appear in it.
func Reads[T object.Object](informer cache.SharedInformer[T]) Option {
	return func(c *core) { knows(c, informer) }
}

// WriteWait is how long a key waits at most for the writes of its last run to appear in the
// informers. After that the key runs, with the writes that are missing in [RequestOf.Unseen].
// The default is 5 minutes. With 0 no key waits: a run may not see what the run before wrote.
//
// The loop waits for the version that the server answered with; after a delete, until the
// informer does not show the object any more or shows it as being deleted. It waits in the
// informers of that kind that read from the server that was written to. If a write does not
// appear within seconds, the loop reads the object from the server. The key then runs if the
// informer shows the same state, or if it does not select the object. Otherwise the informer is
// behind, and the key waits on.
func WriteWait(most time.Duration) Option {
	return func(c *core) { c.writeWait, c.staleReads = most, most <= 0 }
}

// Runs records the runs of the loop in r. The default is the record of the manager that the controller is added to.
func Runs(r *runs.Record) Option { return func(c *core) { c.runs = r } }

// OnGivingUp calls f when the loop gives up a key, after [MaxRetries] or for a [Terminal] error,
// with the request and the error of the last run: to record an event, say. The loop logs the
// error as well. The worker that gave up the key calls f and waits for it.
func OnGivingUp[K comparable](f func(RequestOf[K], error)) Option {
	return over("OnGivingUp", func(c *Keyed[K]) { c.givingUp = f })
}

// RateLimit is how long a failed key waits for its retry. The default is that of
// workqueue.Options.
func RateLimit[K comparable](l workqueue.Limiter[K]) Option {
	return over("RateLimit", func(c *Keyed[K]) { c.limiter = l })
}

// Fair lets the namespaces that have keys take turns: a namespace with 100,000 keys does not
// delay one with a single key. Without it keys come in order of arrival. Priorities come first
// either way. [FairBy] is for keys that are no objects.
func Fair() Option { return FairBy(func(key object.Key) string { return key.Namespace }) }

// FairBy is as [Fair], with the group of each key in place of its namespace. group is called
// with a lock held: it must be quick and must not call the loop.
func FairBy[K comparable](group func(K) string) Option {
	return over("FairBy", func(c *Keyed[K]) { c.group = group })
}
