// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/internal/pause"
)

// RunnerOptions are what a Runner works with.
type RunnerOptions struct {
	// Name is in the log and in the status.
	Name string
	// Sink is where events go. Run closes it when it ends.
	Sink Sink
	// Outbox is where they come from. No other Runner may have the same one.
	Outbox Outbox
	// Delivery says how often and how long the Runner tries; Options.Effective has the defaults
	// of a sort of sink.
	Delivery Delivery
	// Log gets each kind of failure once. Nil is slog.Default.
	Log *slog.Logger

	jitter func(time.Duration) time.Duration // tests replace it
}

// Runner takes events from an outbox to a sink, in order, and tries again what fails. An
// event is removed from the outbox when the sink has taken it, or refused it for good.
type Runner struct {
	o RunnerOptions

	mu      sync.Mutex
	ran     bool
	status  Status
	changed chan struct{} // closed after each Ack, and made anew

	attempts // of Run alone
}

// NewRunner returns a Runner that does nothing before Run.
func NewRunner(o RunnerOptions) (*Runner, error) {
	switch {
	case o.Sink == nil:
		return nil, fmt.Errorf("running sink %s: there is no sink", o.Name)
	case o.Outbox == nil:
		return nil, fmt.Errorf("running sink %s: there is no outbox", o.Name)
	}
	var mistakes []*FieldError
	o.Delivery.check(reporter{path: "delivery", found: &mistakes})
	if len(mistakes) > 0 {
		return nil, fmt.Errorf("running sink %s: %w", o.Name, mistakes[0])
	}
	o.Delivery = o.Delivery.withDefaults(1)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Log = o.Log.With("sink", o.Name)
	if o.jitter == nil {
		o.jitter = jitter
	}
	return &Runner{
		o: o, status: Status{Name: o.Name}, changed: make(chan struct{}),
		attempts: attempts{size: o.Delivery.Batch, reasons: map[string]bool{}},
	}, nil
}

// Status returns how the sink fares. It is safe for concurrent use.
func (r *Runner) Status() Status {
	waiting, oldest := r.o.Outbox.Waiting()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	s.Waiting, s.Oldest = waiting, oldest
	return s
}

// Drained returns when nothing waits to be sent, or with the error of ctx.
func (r *Runner) Drained(ctx context.Context) error {
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		if n, _ := r.o.Outbox.Waiting(); n == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Run sends until ctx ends, or until the outbox is closed and empty. When ctx ends, the Send
// that is under way has 5 s to finish; then its context ends, and its events stay in the outbox.
// An error is one of the outbox, or of a second Run; those of the sink are in the status.
func (r *Runner) Run(ctx context.Context) (err error) {
	r.mu.Lock()
	ran := r.ran
	r.ran = true
	r.mu.Unlock()
	if ran {
		return fmt.Errorf("sink %s: the runner has run before; make another one", r.o.Name)
	}
	idle := true // no Send is under way
	defer func() { r.closeSink(idle) }()
	for ctx.Err() == nil {
		wake := r.o.Outbox.Wake() // before Next: what comes in between wakes
		items, err := r.o.Outbox.Next(r.size)
		if errors.Is(err, ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("sink %s: reading its outbox: %w", r.o.Name, err)
		}
		if len(items) == 0 {
			select {
			case <-wake:
			case <-ctx.Done():
			}
			continue
		}
		if items, err = r.readable(items); err != nil {
			return fmt.Errorf("sink %s: removing from its outbox what cannot be read: %w", r.o.Name, err)
		}
		if len(items) == 0 {
			continue
		}
		var result Result
		if result, idle = r.attempt(ctx, items); !idle {
			return nil
		}
		wait, err := r.settle(ctx, items, result)
		if err != nil {
			return fmt.Errorf("sink %s: removing from its outbox what is done with: %w", r.o.Name, err)
		}
		r.pause(ctx, wait)
	}
	return nil
}

func (r *Runner) closeSink(idle bool) {
	if !idle { // a sink in use cannot be closed
		r.o.Log.Warn("sending was given up at the end; what was not confirmed is sent again at the next start", "grace", grace)
		return
	}
	if err := r.o.Sink.Close(); err != nil {
		r.o.Log.Warn("closing the sink", "error", err)
	}
}

// readable drops items at the beginning that cannot be read, and returns those up to the
// next one.
func (r *Runner) readable(items []Item) ([]Item, error) {
	isEvent := func(item Item) bool { return item.Err == nil && item.Event != nil }
	bad := slices.IndexFunc(items, isEvent)
	if bad < 0 {
		bad = len(items)
	}
	if bad > 0 {
		if err := r.remove(items[:bad]); err != nil {
			return nil, err
		}
		r.mu.Lock()
		r.status.Dropped += uint64(bad)
		r.mu.Unlock()
		r.o.Log.Error("events were dropped, because they cannot be read", "events", bad, "first", items[0].Seq, "error", items[0].Err)
	}
	items = items[bad:]
	for i, item := range items {
		if !isEvent(item) {
			return items[:i], nil
		}
	}
	return items, nil
}

func (r *Runner) remove(items []Item) error {
	if err := r.o.Outbox.Ack(items); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.changed)
	r.changed = make(chan struct{})
	return nil
}

func (r *Runner) pause(ctx context.Context, wait time.Duration) {
	if wait <= 0 {
		return
	}
	r.nextTry(time.Now().Add(wait))
	pause.For(ctx, wait)
	r.nextTry(time.Time{})
}

func (r *Runner) nextTry(t time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.NextTry = t
}
