// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"

	"github.com/setpoint-io/setpoint/watch/event"
)

// wanted reports whether an event is to be told of.
func (t *teller) wanted(e *event.Event) bool {
	o := &t.watch.options
	if e.Verb == event.Existing && !o.Existing || e.Verb == event.Updated && !shown(e.Classes, o.Show) {
		return false
	}
	if o.Keep == nil {
		return true
	}
	keep, err := o.Keep(e)
	if err != nil {
		// It asks for a field that the object does not have, most often.
		t.watch.counts.failed.Add(1)
		t.watch.log.Debug("a condition cannot be decided, and the event is left out", "kind", e.Kind.String(), "object", e.Key.String(), "error", err)
	}
	return keep && err == nil
}

// belongs reports whether an event is needed to say what becomes of an object that is on
// its way somewhere: its status says when it is there.
func (t *teller) belongs(object id, e *event.Event) bool {
	return t.watch.options.Settle > 0 && len(t.held[object]) > 0 && e.Is(event.Status)
}

// shown reports whether one of the classes is told of.
func shown(classes, show []event.Class) bool {
	return slices.ContainsFunc(classes, func(c event.Class) bool {
		return c == event.Content || c == event.Metadata || slices.Contains(show, c)
	})
}
