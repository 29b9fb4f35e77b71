// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Controller is a loop over objects: each run is for the key of one. Make it with [New],
// run it once.
type Controller = Keyed[object.Key]

// Keyed is a loop over keys of any type, for what is not to be done object by object: by
// UID, by pair of a namespace and a name of a resource, or for the cluster as a whole. Make
// it with [NewKeyed], run it once. People see keys as text: a type that is not a string has
// a method String for them.
type Keyed[K comparable] struct {
	core
	reconcile func(context.Context, RequestOf[K]) (Result, error)
	queue     *workqueue.Queue[K]
	limiter   workqueue.Limiter[K]
	group     func(K) string // see Fair
	givingUp  func(RequestOf[K], error)
	sources   []starter

	own       ownWrites[K]
	failures  failures[K]
	startOnce sync.Once
	byHand    atomic.Bool // the queue was handed out: keys may be added to it
}

// core is what a loop has whatever its keys are.
type core struct {
	name string
	log  *slog.Logger
	logs bool // log was given by an option or a host

	workers    int
	maxRetries int
	timeout    time.Duration
	grace      time.Duration
	staleReads bool
	writeWait  time.Duration
	resync     time.Duration

	primary   cache.Handle  // of the first For, whose objects are the owners
	owns      bool          // there is an Owns
	delay     time.Duration // of the sources that are being added, see Delayed
	informers []cache.Handle
	heard     heard

	elsewhere sync.Once // a log line
	refusals  refusals
	panics    panics
}

// starter begins to add keys to a loop's queue, and returns how to end that.
type starter func() (remove func(), err error)

// New makes a controller.
func New(name string, r Reconciler, options ...Option) *Controller {
	return newKeyed(name, r, func(c *Controller) {
		for _, o := range options {
			o.apply(c)
		}
	})
}

// NewKeyed makes a loop over keys of type K. Where its keys come from is said with [From],
// [Keyed.Feed] and [Keyed.Periodically], before it runs; a run adds others with
// [RequestOf.Enqueue].
func NewKeyed[K comparable](name string, r func(context.Context, RequestOf[K]) (Result, error), settings ...Setting) *Keyed[K] {
	return newKeyed(name, r, func(c *Keyed[K]) {
		for _, set := range settings {
			set(&c.core)
		}
	})
}

func newKeyed[K comparable](name string, r func(context.Context, RequestOf[K]) (Result, error), configure func(*Keyed[K])) *Keyed[K] {
	c := &Keyed[K]{reconcile: r, core: core{name: name, workers: 1, grace: 10 * time.Second, writeWait: boundOfWait}}
	configure(c)
	c.logs = c.log != nil
	if !c.logs {
		c.log = slog.Default()
	}
	c.log = c.log.With("controller", name)
	c.queue = workqueue.New(workqueue.Options[K]{Name: name, Limiter: c.limiter, Fair: c.group})
	c.own.init(c)
	return c
}

// Bind gives the loop what it needs of the host that runs it: the logger, unless [Log] gave
// one, and the period of [Resync], unless the loop has one and if the host has a method
// ResyncPeriod. A manager calls it for each controller that is added. It must not be called
// after Run. It returns an error for a loop that could never run a key.
func (c *Keyed[K]) Bind(h Host) error {
	if err := c.check(); err != nil {
		return err
	}
	if !c.logs {
		c.log, c.logs = h.Logger().With("controller", c.name), true
	}
	if r, ok := h.(interface{ ResyncPeriod() time.Duration }); ok && c.resync == 0 {
		c.resync = r.ResyncPeriod()
	}
	if len(c.sources) == 0 && !c.byHand.Load() {
		return errNoSource
	}
	return nil
}

// errNoSource is the error of a loop to which nothing adds keys. A loop of several that are
// joined may get its keys from another one of them.
var errNoSource = errors.New("nothing adds keys to it: want a source, such as For, Watches, From or Feed, or a call of its Queue")

// check returns what is missing without which the loop cannot work.
func (c *Keyed[K]) check() error {
	switch {
	case c.name == "":
		return errors.New("it has no name")
	case c.reconcile == nil:
		return errors.New("it has no reconciler")
	case c.owns && c.primary == (cache.Handle{}):
		return errors.New("it has Owns without For, which names the kind of the owners")
	}
	return CheckWorkers(c.workers)
}

// Name returns the loop's name.
func (c *core) Name() string { return c.name }

// Informers returns those that the Reconciler reads, as far as the loop knows.
func (c *core) Informers() []cache.Handle { return slices.Clone(c.informers) }

// Queue returns the loop's queue, to add keys by hand and to look at it.
func (c *Keyed[K]) Queue() *workqueue.Queue[K] {
	c.byHand.Store(true)
	return c.queue
}

// knows notes an informer that the Reconciler reads.
func (c *core) knows(h cache.Handle) {
	if !slices.Contains(c.informers, h) {
		c.informers = append(c.informers, h)
	}
}

// Run works until ctx ends and nothing of the loop runs any more. It waits first for the
// informers it reads; the factory that made them must be running.
func (c *Keyed[K]) Run(ctx context.Context) error {
	first := false
	c.startOnce.Do(func() { first = true })
	if !first {
		return fmt.Errorf("running controller %s: it has been run before", c.name)
	}
	if err := c.check(); err != nil {
		return fmt.Errorf("running controller %s: %w", c.name, err)
	}
	defer c.queue.ShutDown()
	for _, start := range c.sources {
		remove, err := start()
		if err != nil {
			return fmt.Errorf("running controller %s: %w", c.name, err)
		}
		defer remove()
	}
	for _, informer := range c.informers {
		if err := informer.WaitForSync(ctx); err != nil {
			if ctx.Err() != nil {
				c.log.Info("stopped before it could start", "reason", err)
				return nil
			}
			return fmt.Errorf("running controller %s: %w", c.name, err)
		}
	}
	c.log.Debug("started", "workers", c.workers)

	// Runs under way outlive ctx by the grace period.
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	stopped := context.AfterFunc(ctx, func() {
		c.queue.ShutDown()
		timer := time.AfterFunc(c.grace, func() { cancel(errStopping) })
		context.AfterFunc(work, func() { timer.Stop() })
	})
	defer stopped()

	var workers sync.WaitGroup
	for range c.workers {
		workers.Go(func() { c.worker(ctx, work) })
	}
	workers.Wait()
	cancel(nil)
	c.own.tasks.Wait()
	return nil
}

var errStopping = errors.New("the controller is stopping and its grace period has ended")
