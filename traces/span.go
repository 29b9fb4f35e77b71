// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package traces

import (
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Bounds of one span.
const (
	// mostEvents is the limit for events of a span.
	// Source: OpenTelemetry specification, OTEL_SPAN_EVENT_COUNT_LIMIT.
	mostEvents  = 128
	longestText = 1024 // bytes of an error
)

// ended is a run that waits to be exported.
type ended struct {
	runs.Run
	id identifier
}

// bounded returns a run that waits, without what exceeds the bounds of a span.
func bounded(run runs.Run, id identifier) ended {
	if len(run.Error) > longestText {
		run.Error = strings.Clone(run.Error[:longestText]) + "…"
	}
	if n := len(run.Writes); n > mostEvents {
		run.Writes = append([]runs.Write(nil), run.Writes[:mostEvents]...)
		run.MoreWrites += n - mostEvents
	}
	return ended{run, id}
}

// span returns the span of a run, with its links.
func (e *Exporter) span(of *ended) message {
	m := message(nil).bytes(spanTrace, of.id.trace[:]).bytes(spanID, of.id.span[:]).
		text(spanName, of.Controller).number(spanKind, kindInternal).
		time(spanStart, of.Began).time(spanEnd, of.Began.Add(of.Took)).
		attribute(spanAttribute, "setpoint.controller", of.Controller).
		attribute(spanAttribute, "setpoint.key", of.Key).
		object(spanAttribute, of.Object).
		count(spanAttribute, "setpoint.run", int64(of.Number)).
		count(spanAttribute, "setpoint.attempt", int64(of.Attempt)).
		attribute(spanAttribute, "setpoint.outcome", string(of.Outcome)).
		count(spanAttribute, "setpoint.priority", int64(of.Wait.Priority)).
		count(spanAttribute, "setpoint.wait.delay_us", of.Wait.Delay.Microseconds()).
		count(spanAttribute, "setpoint.wait.before_us", of.Wait.Before.Microseconds()).
		count(spanAttribute, "setpoint.wait.queue_us", of.Wait.Queue.Microseconds()).
		list(spanAttribute, "setpoint.causes", causesOf(of)).
		list(spanAttribute, "setpoint.reasons", codesOf(of))
	for i := range of.Writes {
		m = m.bytes(spanEvent, event(&of.Writes[i], of.Began.Add(of.Took)))
	}
	if of.MoreWrites > 0 {
		m = m.number(spanDroppedEvents, uint64(of.MoreWrites))
	}
	m = e.links(m, of)
	if of.Error != "" {
		m = m.bytes(spanStatus, message(nil).text(statusMessage, of.Error).number(statusCode, statusError))
	}
	return m
}

func causesOf(of *ended) (texts []string) {
	for _, c := range of.Causes {
		texts = append(texts, c.String())
	}
	return texts
}

func codesOf(of *ended) (codes []string) {
	for _, reason := range of.Reasons {
		codes = append(codes, reason.Code)
	}
	return codes
}

// event returns the event of a write. The record has no times of writes, so the event has the end of the run.
func event(w *runs.Write, end time.Time) message {
	m := message(nil).time(eventTime, end).text(eventName, w.Verb).object(eventAttribute, w.Object).
		attribute(eventAttribute, "setpoint.subresource", w.Subresource).
		attribute(eventAttribute, "setpoint.version", w.Version).
		attribute(eventAttribute, "setpoint.manager", w.Manager)
	if w.Code != 0 {
		m = m.count(eventAttribute, "setpoint.code", int64(w.Code))
	}
	if w.Unknown {
		m = m.attribute(eventAttribute, "setpoint.answer", "unknown")
	}
	return m
}

// links appends links to the runs whose writes caused a run. A run of an earlier process has another seed, and a resync
// is no change, so neither gets a link. After them come links to the trace contexts of objects.
func (e *Exporter) links(m message, of *ended) message {
	linked := map[identifier]bool{}
	for _, cause := range of.Causes {
		if cause.Object == (runs.Object{}) || cause.Verb == workqueue.Resync {
			continue
		}
		by, _, found := e.record.Causing(cause, of.Began)
		id := e.ids.of(by.Number)
		if !found || by.Restored || by.Number == of.Number || !e.ids.sampled(id) {
			continue
		}
		linked[id] = true
		m = m.bytes(spanLink, message(nil).bytes(linkTrace, id.trace[:]).bytes(linkSpan, id.span[:]).
			attribute(linkAttribute, "setpoint.cause", cause.String()))
	}
	return contextLinks(m, of, linked)
}
