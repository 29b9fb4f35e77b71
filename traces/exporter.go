// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package traces

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/runs"
)

// Exporter sends spans of ended runs to a receiver. Make it with [New], and give it to a manager with manager.Traces.
// All methods are safe for concurrent use.
type Exporter struct {
	config Config
	at     string // the endpoint as it is logged: without a password or a query
	http   *http.Client
	ids    identifiers
	record *runs.Record // that Observe was called with

	waiting chan ended
	full    chan struct{} // a batch waits
	sent    atomic.Uint64
	dropped atomic.Uint64

	failing bool   // the receiver does not take spans, and the log says so
	said    uint64 // how many dropped spans the log has
}

// New returns an exporter. It does not connect.
func New(config Config) (*Exporter, error) {
	c, err := config.complete()
	if err != nil {
		return nil, fmt.Errorf("making an exporter of traces: %w", err)
	}
	return &Exporter{
		config: c, at: shown(c.Endpoint), http: newClient(&c), ids: newIdentifiers(1 - c.Drop),
		waiting: make(chan ended, c.Queue), full: make(chan struct{}, 1),
	}, nil
}

// Observe has the exporter make spans of the runs that a record gets from now on. It must be called once, before Run.
// Spans link to runs of the same record.
func (e *Exporter) Observe(record *runs.Record) {
	e.record = record
	record.Observe(e.ended)
	if e.config.Annotations {
		record.Propagate(e.traceparent)
	}
}

// ended takes a run that has ended. It never waits.
func (e *Exporter) ended(run runs.Run) {
	id := e.ids.of(run.Number)
	if !e.ids.sampled(id) {
		return
	}
	select {
	case e.waiting <- bounded(run, id):
	default:
		e.dropped.Add(1)
	}
	if len(e.waiting) >= e.config.Batch {
		select {
		case e.full <- struct{}{}:
		default: // Run has been notified
		}
	}
}

// Receiver returns the endpoint, without a password or a query.
func (e *Exporter) Receiver() string { return e.at }

// Stats are figures of an exporter.
type Stats struct {
	Sent    uint64 // spans that the receiver took
	Dropped uint64 // spans that it did not take, and those for which the queue had no room
}

// Stats returns the figures of this moment.
func (e *Exporter) Stats() Stats { return Stats{Sent: e.sent.Load(), Dropped: e.dropped.Load()} }

// lastExport is how long Run may take for the spans that wait when its context ends.
const lastExport = time.Second

// Run sends the spans until ctx ends, then those that still wait, for a second at most.
func (e *Exporter) Run(ctx context.Context) {
	tick := time.NewTicker(e.config.Delay)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			e.export(ctx)
		case <-e.full:
			e.export(ctx)
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastExport)
	defer cancel()
	e.export(last)
	if left := len(e.waiting); left > 0 {
		e.dropped.Add(uint64(left))
		e.config.Log.Warn("the newest runs have no spans: the receiver does not take them in time", "receiver", e.at, "spans", left)
	}
}

// export sends the spans that wait, a batch after the other, until none waits or ctx ends.
func (e *Exporter) export(ctx context.Context) {
	for ctx.Err() == nil && len(e.waiting) > 0 {
		spans := e.batch()
		err := e.deliver(ctx, request(e.config.Resource, spans))
		e.count(uint64(len(spans)), err)
		e.say(err)
	}
}

// count counts the spans of a batch that was delivered with an error, or without one.
func (e *Exporter) count(spans uint64, err error) {
	lost := uint64(0)
	if rejected, ok := errors.AsType[rejection](err); ok {
		lost = min(uint64(rejected), spans)
	} else if err != nil {
		lost = spans
	}
	e.dropped.Add(lost)
	e.sent.Add(spans - lost)
}

// batch returns the spans of the runs that have waited longest.
func (e *Exporter) batch() (spans []message) {
	for len(spans) < e.config.Batch {
		select {
		case of := <-e.waiting:
			spans = append(spans, e.span(&of))
		default:
			return spans
		}
	}
	return spans
}

// say logs that the receiver has begun or ceased to take spans, and that spans are dropped although it takes them.
func (e *Exporter) say(err error) {
	dropped := e.dropped.Load()
	switch {
	case err != nil && !e.failing:
		e.failing = true
		e.config.Log.Warn("spans cannot be exported; controllers work on, and the spans are dropped", "receiver", e.at, "error", err)
	case err == nil && e.failing:
		e.failing, e.said = false, dropped
		e.config.Log.Info("spans are exported again", "receiver", e.at, "dropped", dropped)
	case err == nil && dropped > 0 && e.said == 0:
		e.said = dropped
		e.config.Log.Warn("spans are dropped: more runs end than the receiver takes", "receiver", e.at, "dropped", dropped)
	}
}
