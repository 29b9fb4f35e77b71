// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
)

const (
	// grace is how long a Send may go on after the context of Run has ended.
	grace = 5 * time.Second
	// lastSecond is how long Run waits for a Send whose context it has cancelled. A Send that
	// does not end with its context is left behind.
	lastSecond = time.Second
)

// attempt calls Send once, and reports whether it has returned.
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
	if result, ok := receive(done, grace); ok {
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
