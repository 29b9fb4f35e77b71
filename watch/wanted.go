// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/settle"
)

// wanted reports whether an event is published.
func (p *publisher) wanted(e *event.Event) bool {
	o := &p.watch.options
	if e.Verb == event.Existing && !o.Existing || e.Verb == event.Updated && !shown(e.Classes, o.Show) {
		return false
	}
	if o.Keep == nil {
		return true
	}
	keep, err := o.Keep(e)
	p.watch.judge.event(e, err)
	if err != nil {
		// Most often the condition reads a field that the object does not have.
		p.watch.counts.failed.Add(1)
		p.watch.log.Debug("a condition cannot be decided, and the event is left out", "kind", e.Kind.String(), "object", e.Key.String(), "error", err)
	}
	return keep && err == nil
}

// belongs reports whether an event is needed for the summary of an object that is not at rest: its
// status says when it is.
func (p *publisher) belongs(object id, e *event.Event) bool {
	return p.watch.options.Settle > 0 && e.Is(event.Status) && (len(p.held[object]) > 0 || p.underway[object] != nil)
}

// goesOn notes whether an object is on its way still when its summary is published: a rollout may take longer than the settler holds
// an update, and the next states belong to the next summary.
func (p *publisher) goesOn(e *event.Event, f *follower) {
	if object := (id{e.Kind, e.Key}); p.watch.options.Settle > 0 && e.Verb == event.Updated && !settle.Rests(e.Kind, e.New) {
		p.underway[object] = f
	} else {
		delete(p.underway, object)
	}
}

// shown reports whether one of the classes is published.
func shown(classes, show []event.Class) bool {
	return slices.ContainsFunc(classes, func(c event.Class) bool {
		return c == event.Content || c == event.Metadata || slices.Contains(show, c)
	})
}
