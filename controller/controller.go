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
	"time"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Controller is a loop. Make it with New, run it once.
type Controller struct {
	name      string
	reconcile Reconciler
	queue     *workqueue.Queue[object.Key]
	limiter   workqueue.Limiter[object.Key]
	fair      bool
	log       *slog.Logger
	logs      bool // log was given by an option or a host
	client    *client.Client

	workers    int
	maxRetries int
	timeout    time.Duration
	grace      time.Duration
	staleReads bool
	writeWait  time.Duration
	resync     time.Duration
	givingUp   func(Request, error)

	primary   cache.Handle  // of the first For: whom owners are
	delay     time.Duration // of the sources that are being added, see Delayed
	informers []cache.Handle
	sources   []source
	heard     heard

	own       ownWrites
	refusals  refusals
	failures  failures
	panics    panics
	startOnce sync.Once
}

// An Option changes a controller in the making.
type Option func(*Controller)

// Workers is how many keys are worked on at a time. The default is 1.
func Workers(n int) Option { return func(c *Controller) { c.workers = n } }

// MaxRetries gives a key up when it has failed once and that many times more in a row:
// it is left alone until something changes, which the log says as an error. A run without
// an error ends the row, also one that asks for [Result.Again]. The default, 0, is never.
func MaxRetries(n int) Option { return func(c *Controller) { c.maxRetries = n } }

// OnGivingUp has f called with the request and the error of the last run when a key is
// given up, after [MaxRetries] or for a [Terminal] error: to record an event, say. The log
// says it all the same. f is called by a worker, which waits for it.
func OnGivingUp(f func(Request, error)) Option { return func(c *Controller) { c.givingUp = f } }

// Timeout ends the context of a run after a time. The run has failed if it returns an
// error then, and is tried again as after any other. The default, 0, is never.
func Timeout(d time.Duration) Option { return func(c *Controller) { c.timeout = d } }

// Resync has every object of each [For] looked at again in this period, changed or not,
// after all that did change. The default, 0, is never; below a second is a second.
func Resync(period time.Duration) Option { return func(c *Controller) { c.resync = period } }

// Grace is how long runs that are under way may take to finish when the controller
// stops. The default is 10 s.
func Grace(d time.Duration) Option { return func(c *Controller) { c.grace = d } }

// CheckWorkers returns an error for a number of workers that does no work.
func CheckWorkers(n int) error {
	if n < 1 {
		return fmt.Errorf("%d workers; want 1 or more", n)
	}
	return nil
}

// RateLimit says how long a failed key waits. The default is
// workqueue.DefaultLimiter.
func RateLimit(l workqueue.Limiter[object.Key]) Option { return func(c *Controller) { c.limiter = l } }

// Fair has the namespaces that have keys take turns: one with 100,000 keys does not delay one
// with a single key. Without it keys come in order of arrival. Priorities are kept either way.
func Fair() Option { return func(c *Controller) { c.fair = true } }

// Log gives the controller a logger. The default is that of the manager that the
// controller is added to, or slog.Default.
func Log(l *slog.Logger) Option { return func(c *Controller) { c.log = l } }

// Reads names an informer that the Reconciler reads and that starts no run: the
// controller waits for its first state, and for own writes of its kind to appear
// in it.
func Reads[T object.Object](informer cache.SharedInformer[T]) Option {
	return func(c *Controller) { c.knows(informer.Handle()) }
}

// ReadStale switches off the wait for own writes.
func ReadStale() Option { return func(c *Controller) { c.staleReads = true } }

// WriteWait is how long a key is held back at most for what its last run wrote. When it
// is over the key is let go, and the next run is told in [Request.Unseen] what it may not
// find in the informers. The default is 5 minutes.
func WriteWait(most time.Duration) Option { return func(c *Controller) { c.writeWait = most } }

// Client reads what became of writes to its server whose answer was lost, or that do not
// appear. The default, nil, is the client that wrote.
func Client(cl *client.Client) Option { return func(c *Controller) { c.client = cl } }

// On binds the controller to a host when it is made: it has the host's [Client] and [Log].
// A manager does so for each controller that is added to it. On is for a controller that
// runs inside another [Runnable], or that another program than a manager runs.
func On(h Host) Option {
	return func(c *Controller) { c.client, c.log = h.Client(), h.Logger() }
}

// Bind gives the controller what it needs of the host that runs it: the logger, unless
// [Log] or [On] gave one, and the period of [Resync], unless the controller has one and if
// the host has a method ResyncPeriod. A manager calls it for each controller that is added. It must
// not be called after Run.
func (c *Controller) Bind(h Host) {
	if !c.logs {
		c.log, c.logs = h.Logger().With("controller", c.name), true
	}
	if r, ok := h.(interface{ ResyncPeriod() time.Duration }); ok && c.resync == 0 {
		c.resync = r.ResyncPeriod()
	}
}

// New makes a controller.
func New(name string, r Reconciler, options ...Option) *Controller {
	c := &Controller{name: name, reconcile: r, workers: 1, grace: 10 * time.Second, writeWait: boundOfWait}
	for _, option := range options {
		option(c)
	}
	c.logs = c.log != nil
	if !c.logs {
		c.log = slog.Default()
	}
	c.log = c.log.With("controller", name)
	queue := workqueue.Options[object.Key]{Name: name, Limiter: c.limiter}
	if c.fair {
		queue.Fair = func(key object.Key) string { return key.Namespace }
	}
	c.queue = workqueue.New(queue)
	c.own.init(c)
	return c
}

// Name returns the controller's name.
func (c *Controller) Name() string { return c.name }

// Queue returns the controller's queue, to add keys by hand and to look at it.
func (c *Controller) Queue() *workqueue.Queue[object.Key] { return c.queue }

// knows notes an informer that the Reconciler reads.
func (c *Controller) knows(h cache.Handle) {
	if !slices.Contains(c.informers, h) {
		c.informers = append(c.informers, h)
	}
}

// Run works until ctx ends and nothing of the controller runs any more. It waits
// first for the informers it reads; the factory that made them must be running.
func (c *Controller) Run(ctx context.Context) error {
	first := false
	c.startOnce.Do(func() { first = true })
	if !first {
		return fmt.Errorf("running controller %s: it has been run before", c.name)
	}
	if c.workers < 1 {
		return fmt.Errorf("running controller %s: %d workers; at least one is needed", c.name, c.workers)
	}
	if c.reconcile == nil {
		return fmt.Errorf("running controller %s: it has no reconciler", c.name)
	}
	defer c.queue.ShutDown()
	for _, s := range c.sources {
		remove, err := s(c)
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
