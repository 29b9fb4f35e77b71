// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
)

// RunnerOptions are what a Runner works with.
type RunnerOptions struct {
	// Name is in the log and in the status.
	Name string
	// Sink is where events go. Run closes it when it ends.
	Sink Sink
	// Outbox is where they come from. No other Runner may have the same one.
	Outbox Outbox
	// Delivery is how often and how long it is tried; Options.Effective has the defaults
	// of a sort of sink.
	Delivery Delivery
	// Grace is how long a Send may go on after the context has ended. Default: 5s.
	Grace time.Duration
	// Log gets troubles, once each. Default: nothing is logged.
	Log *slog.Logger
	// Clock tells the time. Default: time.Now.
	Clock func() time.Time
	// Jitter changes a wait, so that not all come back at once. Default: random, between
	// half and all of it.
	Jitter func(time.Duration) time.Duration
}

// lastSecond is how long Run waits for a Send whose context it has cancelled. A sink that
// heeds its context needs no time; what another one does is not waited for.
const lastSecond = time.Second

// ErrRan is returned by Run if it was called before.
var ErrRan = errors.New("the runner has run before; make another one")

// Runner takes events from an outbox to a sink, in order, and tries again what fails. An
// event is removed from the outbox when the sink has taken it, or refused it for good.
type Runner struct {
	o RunnerOptions

	mu      sync.Mutex
	ran     bool
	status  Status
	changed chan struct{} // closed after each Ack, and made anew

	// Of Run alone:
	size     int             // how many events are sent next, at most
	failures int             // in a row
	dropped  int             // events dropped since the last that was taken
	head     string          // the event that failed last
	tries    int             // how often it did
	warned   bool            // of the trouble there is
	reasons  map[string]bool // refusals that were logged
}

// NewRunner returns a Runner that does nothing before Run.
func NewRunner(o RunnerOptions) (*Runner, error) {
	switch {
	case o.Sink == nil:
		return nil, fmt.Errorf("running sink %s: there is no sink", o.Name)
	case o.Outbox == nil:
		return nil, fmt.Errorf("running sink %s: there is no outbox", o.Name)
	}
	if err := o.Delivery.Validate(); err != nil {
		return nil, fmt.Errorf("running sink %s: %w", o.Name, within("delivery", err))
	}
	o.Delivery = o.Delivery.withDefaults(1)
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Log = o.Log.With("sink", o.Name)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Jitter == nil {
		o.Jitter = jitter
	}
	return &Runner{
		o: o, status: Status{Name: o.Name}, changed: make(chan struct{}),
		size: o.Delivery.Batch, reasons: map[string]bool{},
	}, nil
}

// Status returns how it fares. It is safe for concurrent use.
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

// Run sends until ctx ends, or until the outbox is closed and empty. When ctx ends, the
// Send that is under way has Grace to finish and is given up then: its events stay in the
// outbox. An error is one of the outbox, or ErrRan; those of the sink are in the status.
func (r *Runner) Run(ctx context.Context) (err error) {
	r.mu.Lock()
	ran := r.ran
	r.ran = true
	r.mu.Unlock()
	if ran {
		return ErrRan
	}
	idle := true // no Send is under way
	defer func() {
		if !idle {
			r.o.Log.Warn("sending was given up at the end; what was not confirmed is sent again at the next start", "grace", r.o.Grace)
			return // a sink in use cannot be closed
		}
		if closing := r.o.Sink.Close(); closing != nil {
			r.o.Log.Warn("closing the sink", "error", closing)
		}
	}()
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

// attempt sends once. It reports whether Send has returned.
func (r *Runner) attempt(ctx context.Context, items []Item) (Result, bool) {
	events := make([]*event.Event, len(items))
	for i, item := range items {
		events[i] = item.Event
	}
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.o.Delivery.Timeout)
	defer cancel()
	done := make(chan Result, 1)
	go func() { done <- r.send(sending, events) }()
	select {
	case result := <-done:
		return result, true
	case <-ctx.Done():
	}
	if result, ok := receive(done, r.o.Grace); ok {
		return result, true
	}
	cancel()
	return receive(done, lastSecond)
}

func receive(done <-chan Result, within time.Duration) (Result, bool) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case result := <-done:
		return result, true
	case <-timer.C:
		return Result{}, false
	}
}

// send makes an error of a panic, and an answer of one that makes no sense.
func (r *Runner) send(ctx context.Context, events []*event.Event) (result Result) {
	defer func() {
		if p := recover(); p != nil {
			// Its value can hold anything, a secret too.
			result = Result{Err: fmt.Errorf("the sink panicked (%T)", p)}
		}
	}()
	result = r.o.Sink.Send(ctx, events)
	result.Done = min(max(result.Done, 0), len(events))
	switch {
	case result.Done == len(events):
		result.Err = nil
	case result.Err == nil:
		result.Err = errors.New("the sink did not say what became of an event")
	}
	return result
}

// settle does what follows from a result, and returns how long to wait.
func (r *Runner) settle(ctx context.Context, items []Item, result Result) (time.Duration, error) {
	if result.Done > 0 {
		if err := r.taken(items[:result.Done], result.Refused); err != nil {
			return 0, err
		}
	}
	if result.Err == nil {
		r.size = min(r.size*2, r.o.Delivery.Batch)
		return 0, nil
	}
	select {
	case <-ctx.Done():
		return 0, nil // it was cut short, which says nothing of the receiver
	default:
		return r.failed(items[result.Done:], result)
	}
}

// taken removes events that were sent or refused.
func (r *Runner) taken(items []Item, refused []Refusal) error {
	if err := r.remove(items); err != nil {
		return err
	}
	r.failures, r.dropped, r.head, r.tries = 0, 0, "", 0
	r.mu.Lock()
	r.status.Refused += uint64(len(refused))
	r.status.Sent += uint64(len(items) - len(refused))
	if len(items) > len(refused) {
		r.status.LastSent = r.o.Clock()
	}
	since := r.status.Trouble
	r.status.Trouble = time.Time{} // what fails now is another trouble
	if len(refused) > 0 {
		r.status.LastError = refused[len(refused)-1].Err.Error()
	}
	r.mu.Unlock()
	for _, refusal := range refused {
		r.logRefusal(items[refusal.Index].Event, refusal.Err)
	}
	if r.warned {
		r.warned = false
		r.o.Log.Info("the sink works again", "after", r.o.Clock().Sub(since).Round(time.Millisecond))
	}
	return nil
}

// maxReasons bounds what is remembered of refusals: their words come from outside.
const maxReasons = 100

func (r *Runner) logRefusal(e *event.Event, err error) {
	reason := err.Error()
	if r.reasons[reason] || len(r.reasons) >= maxReasons {
		return
	}
	r.reasons[reason] = true
	r.o.Log.Warn("an event was refused and is not sent again; others for the same reason are only counted",
		"event", e.ID, "kind", e.Kind.String(), "object", e.Key.String(), "reason", reason)
}

// failuresToWarn is how many failures in a row are worth a line in the log. One now and
// then is what retries are for.
const failuresToWarn = 3

// triesOfOld is how often an event that is too old is tried all the same: it may have
// become old while nobody ran.
const triesOfOld = 3

// failed notes that the first of items could not be sent, drops what is too old, and
// returns how long to wait.
func (r *Runner) failed(items []Item, result Result) (time.Duration, error) {
	now := r.o.Clock()
	head := items[0].Event
	if r.head != head.ID {
		r.head, r.tries = head.ID, 0
	}
	r.tries++
	r.failures++
	r.size = max(r.size/2, 1) // one event must not hold up its neighbours
	r.mu.Lock()
	if r.status.Trouble.IsZero() {
		r.status.Trouble = now
	}
	trouble := now.Sub(r.status.Trouble)
	r.status.Retried++
	r.status.LastError = result.Err.Error()
	r.mu.Unlock()

	wait := max(r.o.Jitter(backoff(r.o.Delivery, r.failures)), result.Wait)
	level := slog.LevelDebug
	if r.failures >= failuresToWarn && !r.warned {
		level, r.warned = slog.LevelWarn, true
	}
	r.o.Log.Log(context.Background(), level, "sending failed and is tried again", "error", result.Err, "attempt", r.failures, "wait", wait)

	old := 0
	for old < len(items) && now.Sub(items[old].Event.Time) > r.o.Delivery.MaxAge {
		old++
	}
	switch dead := trouble >= r.o.Delivery.MaxAge; {
	case old == 0:
		return wait, nil
	case dead && r.dropped > 0:
		// The event before was dropped, and this one fails as well: it is not the event.
		return wait, r.drop(items[:old], result.Err)
	case dead || r.tries >= triesOfOld:
		if r.dropped == 0 {
			wait = result.Wait // perhaps it was the event: the next one is tried at once
		}
		return wait, r.drop(items[:1], result.Err)
	}
	return wait, nil
}

// drop removes events that are too old.
func (r *Runner) drop(items []Item, err error) error {
	if err := r.remove(items); err != nil {
		return err
	}
	r.dropped += len(items)
	r.mu.Lock()
	r.status.Dropped += uint64(len(items))
	r.mu.Unlock()
	e := items[0].Event
	r.o.Log.Error("events were dropped, because they could not be sent for too long", "events", len(items), "maxAge", r.o.Delivery.MaxAge,
		"first", e.ID, "kind", e.Kind.String(), "object", e.Key.String(), "error", err)
	return nil
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
	r.nextTry(r.o.Clock().Add(wait))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	r.nextTry(time.Time{})
}

func (r *Runner) nextTry(t time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.NextTry = t
}

// RunAll runs each runner until it ends, side by side: one that fails does not stop the
// others. It refuses two of one name, since they would be two of one sink. The error joins
// theirs.
func RunAll(ctx context.Context, runners ...*Runner) error {
	names := map[string]bool{}
	for _, r := range runners {
		if names[r.o.Name] {
			return fmt.Errorf("there are two runners of sink %s", r.o.Name)
		}
		names[r.o.Name] = true
	}
	errs := make([]error, len(runners))
	var all sync.WaitGroup
	for i, r := range runners {
		all.Go(func() { errs[i] = r.Run(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}
