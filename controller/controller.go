// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Controller is a loop over objects: each run is for the key of one object. Make it with
// [New], and run it once.
type Controller = Keyed[object.Key]

// Keyed is a loop over keys of any type, for work that is not done object by object: by UID,
// by namespace and name of a resource, or for the cluster as a whole. Make it with
// [NewKeyed], and run it once. The log and the debug pages show keys as text, so a key type
// that is not a string should have a method String.
type Keyed[K comparable] struct {
	core
	reconcile func(context.Context, RequestOf[K]) (Result, error)
	queue     *workqueue.Queue[K]
	limiter   workqueue.Limiter[K]
	group     func(K) string // see Fair
	givingUp  func(RequestOf[K], error)
	sources   []starter // of events of informers
	feeds     []starter
	follows   following[K]

	own       ownWrites[K]
	failures  failures[K]
	startOnce sync.Once
	byHand    atomic.Bool // the queue was handed out: keys may be added to it
}

// core is the part of a loop that does not depend on the type of its keys.
type core struct {
	loop any          // the *Keyed that the core is part of
	keys reflect.Type // of that loop
	name string
	log  *slog.Logger
	logs bool  // log was given by an option or a host
	err  error // of options that the loop cannot have

	workers    int
	maxRetries int
	timeout    time.Duration
	grace      time.Duration
	staleReads bool
	writeWait  time.Duration
	resync     time.Duration

	primary   cache.Handle  // of the first For: the kind of owners
	owns      bool          // there is an Owns
	delay     time.Duration // of the sources that are being added, see Delayed
	informers []cache.Handle
	states    map[cache.Handle]func(object.Key) (object.Object, error) // reads an object of an informer
	heard     heard
	shows     []shown      // see Shows
	runs      *runs.Record // nil: runs are not recorded
	recorder  *runs.Loop   // of runs; made when the loop runs

	elsewhere sync.Once // logs writes to another server
	refusals  refusals
	panics    panics
}

// starter begins to add keys to a loop's queue, and returns how to end that.
type starter func() (remove func(), err error)

// New makes a controller.
func New(name string, r Reconciler, options ...Option) *Controller {
	return NewKeyed(name, r, options...)
}

// NewKeyed makes a loop over keys of type K. Its keys come from [Watches], [Keyed.Feed] and
// [Keyed.Periodically], all before it runs, and from [RequestOf.Enqueue] of its runs.
func NewKeyed[K comparable](name string, r func(context.Context, RequestOf[K]) (Result, error), options ...Option) *Keyed[K] {
	c := &Keyed[K]{reconcile: r, core: core{name: name, workers: 1, grace: 10 * time.Second, writeWait: boundOfWait}}
	c.loop, c.keys = c, reflect.TypeFor[K]()
	for _, configure := range options {
		configure(&c.core)
	}
	c.logs = c.log != nil
	if !c.logs {
		c.log = slog.Default()
	}
	c.log = c.log.With("controller", name)
	c.queue = workqueue.New(workqueue.Options[K]{Name: name, Limiter: c.limiter, Fair: c.group})
	c.own.init(c)
	return c
}

// refuse keeps an error for Bind and Run to return.
func (c *core) refuse(format string, args ...any) {
	c.err = errors.Join(c.err, fmt.Errorf(format, args...))
}

// Bind gives the loop the logger of the host that runs it, unless [Log] gave one, and the
// host's resync period, unless [Resync] gave one and if the host has a method ResyncPeriod. If the host has a method
// Runs, it records the loop's runs there, unless [Runs] named another record.
// A manager binds each controller that is added to it. Bind must not be called after Run. It
// returns an error for a loop that could never run a key.
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
	if r, ok := h.(interface{ Runs() *runs.Record }); ok && c.runs == nil {
		c.runs = r.Runs()
	}
	if len(c.sources)+len(c.feeds) == 0 && !c.byHand.Load() {
		return errNoSource
	}
	return nil
}

// errNoSource is the error of a loop to which nothing adds keys. A loop of several that are
// joined may get its keys from another one of them.
var errNoSource = errors.New("nothing adds keys to it: want a source, such as For, Watches or Feed, or a call of its Queue")

// check returns what is missing without which the loop cannot work.
func (c *Keyed[K]) check() error {
	switch {
	case c.name == "":
		return errors.New("it has no name")
	case c.reconcile == nil:
		return errors.New("it has no reconciler")
	case c.err != nil:
		return c.err
	case c.owns && c.primary == (cache.Handle{}):
		return errors.New("it has Owns without For, which names the kind of the owners")
	}
	if c.workers < 1 {
		return fmt.Errorf("%d workers; want 1 or more", c.workers)
	}
	return nil
}

// Name returns the loop's name.
func (c *core) Name() string { return c.name }

// Informers returns the informers that the loop knows: those of its sources and of [Reads].
func (c *core) Informers() []cache.Handle { return slices.Clone(c.informers) }

// Queue returns the loop's queue, to add keys by hand and to inspect it.
func (c *Keyed[K]) Queue() *workqueue.Queue[K] {
	c.byHand.Store(true)
	return c.queue
}

// knows adds an informer that the Reconciler reads.
func knows[T object.Object](c *core, informer cache.SharedInformer[T]) {
	h := informer.Handle()
	if slices.Contains(c.informers, h) {
		return
	}
	c.informers = append(c.informers, h)
	if c.states == nil {
		c.states = map[cache.Handle]func(object.Key) (object.Object, error){}
	}
	c.states[h] = func(key object.Key) (object.Object, error) { return informer.Get(key) }
}

// Run reconciles until ctx ends, and returns when nothing of the loop runs any more. It first
// waits for the informers that it reads; the factory that made them must be running.
func (c *Keyed[K]) Run(ctx context.Context) error {
	first := false
	c.startOnce.Do(func() { first = true })
	if !first {
		return fmt.Errorf("running controller %s: it has been run before", c.name)
	}
	if err := c.check(); err != nil {
		return fmt.Errorf("running controller %s: %w", c.name, err)
	}
	c.record()
	defer c.queue.ShutDown()
	defer c.unfollow()
	c.takeBacklog()
	if err := c.follow(); err != nil {
		return fmt.Errorf("running controller %s: %w", c.name, err)
	}
	for _, start := range c.feeds {
		end, err := start()
		if err != nil {
			return fmt.Errorf("running controller %s: %w", c.name, err)
		}
		defer end()
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
