// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/trouble"
)

// mostAuthors is how many authors of merged changes are named.
const mostAuthors = 8

// become makes the event that stands for all that a hold has.
func (s *Settler) become(h *hold) *event.Event {
	if h.first == h.last && !h.moving {
		return h.last
	}
	var e event.Event
	switch {
	case h.first == h.last || h.last.Verb == event.Deleted: // Old is what it was like at last
		e = *h.last
	default:
		e = *s.options.Merge(h.first, h.last)
	}
	e.ID, e.Kind, e.Key, e.UID, e.Version = h.last.ID, h.last.Kind, h.last.Key, h.last.UID, h.last.Version
	e.Verb, e.Time, e.Missed = h.last.Verb, h.last.Time, h.missed
	if h.last.Verb != event.Deleted {
		e.Verb = h.first.Verb
		e.Authors = h.authors
		if h.moving && len(h.wanted) > 0 { // the others only report how far the object has come
			e.Authors = h.wanted
		}
	}
	if h.first.Verb == event.Created { // nothing was before
		e.Fields = nil
		e.Classes = []event.Class{event.Content}
		if e.Verb == event.Created {
			e.Old = nil
		}
	}
	if h.changes > 1 {
		e.Merged, e.Since = h.changes, since(h.first)
	}
	h.summarize(&e)
	return &e
}

// summarize says in a sentence what became of the object, where there is one to say.
func (h *hold) summarize(e *event.Event) {
	took := span(since(h.first), h.last.Time)
	switch {
	case e.Verb == event.Deleted && h.first.Verb == event.Created:
		e.Summary = "created and deleted again" + took
	case e.Verb == event.Deleted:
	case h.moving && h.atRest:
		e.Verb = event.Settled
		e.Summary = changes(h.changes) + took + ", now " + withTrouble(h.state, "", e)
	case h.moving:
		e.Summary = changes(h.changes) + took + ", " + withTrouble(h.state, ", not at rest yet", e)
	}
}

// withTrouble returns how far an object has come, a remark on that, and what is wrong with the
// object. That says more than the reason that the state ends with.
func withTrouble(state, remark string, e *event.Event) string {
	troubles := trouble.Now(e.Kind, e.New)
	if len(troubles) > 0 {
		state, _, _ = strings.Cut(state, ": ")
	}
	return strings.Join(append([]string{state + remark}, troubles...), "; ")
}

// since returns when the first change of an event was seen.
func since(e *event.Event) time.Time {
	if !e.Since.IsZero() {
		return e.Since
	}
	return e.Time
}

func changes(n int) string {
	if n == 1 {
		return "1 change"
	}
	return fmt.Sprintf("%d changes", n)
}

// span returns " in 8 s", or nothing if it is too short to tell.
func span(from, to time.Time) string {
	d := to.Sub(from)
	switch {
	case d < 50*time.Millisecond:
		return ""
	case d < 950*time.Millisecond:
		return fmt.Sprintf(" in %.1f s", d.Seconds())
	case d < 100*time.Second:
		return fmt.Sprintf(" in %.0f s", d.Seconds())
	default:
		return fmt.Sprintf(" in %.0f min", d.Minutes())
	}
}

// join returns the authors of two events, each once, the newer ones first.
func join(newer, older []event.Author) []event.Author {
	if len(older) == 0 {
		return newer
	}
	all := slices.Clone(newer)
	for _, a := range older {
		known := slices.ContainsFunc(all, func(b event.Author) bool {
			return a.Manager == b.Manager && a.Operation == b.Operation && a.Subresource == b.Subresource
		})
		if !known && len(all) < mostAuthors {
			all = append(all, a)
		}
	}
	return all
}
