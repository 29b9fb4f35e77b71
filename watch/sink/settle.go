// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"context"
	"log/slog"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
)

// attempts is what a Runner knows of its attempts so far.
type attempts struct {
	size     int             // how many events are sent next, at most
	failures int             // in a row
	dropped  int             // events dropped since the last that was taken
	head     string          // the event that failed last
	tries    int             // how often it did
	warned   bool            // of the trouble there is
	reasons  map[string]bool // refusals that were logged
}

// settle removes the events that are done, and returns how long to wait before the next attempt.
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
		return 0, nil // the end of the context is no failure of the receiver
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
		r.status.LastSent = time.Now()
	}
	since := r.status.Trouble
	r.status.Trouble = time.Time{} // the next failure begins another trouble
	if len(refused) > 0 {
		r.status.LastError = refused[len(refused)-1].Err.Error()
	}
	r.mu.Unlock()
	for _, refusal := range refused {
		r.logRefusal(items[refusal.Index].Event, refusal.Err)
	}
	if r.warned {
		r.warned = false
		r.o.Log.Warn("the sink works again", "after", time.Since(since).Round(time.Millisecond))
	}
	return nil
}

// maxReasons bounds how many refusals are remembered: their texts come from outside.
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

// failuresToWarn is after how many failures in a row the log has a warning. Retries are there
// for a single one.
const failuresToWarn = 3

// triesOfOld is how often an event that is too old is tried all the same: it may have become old
// while no process ran.
const triesOfOld = 3

// failed notes that the first of items could not be sent, drops what is too old, and
// returns how long to wait.
func (r *Runner) failed(items []Item, result Result) (time.Duration, error) {
	now := time.Now()
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

	wait := max(r.o.jitter(r.o.Delivery.backoff(r.failures)), result.Wait)
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
		// The event before was dropped, and this one fails as well: the receiver is the reason.
		return wait, r.drop(items[:old], result.Err)
	case dead || r.tries >= triesOfOld:
		if r.dropped == 0 {
			wait = result.Wait // the event may be the reason: the next one is tried at once
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
