// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/observe"
)

// id identifies an object among all kinds.
type id struct {
	kind event.Kind
	key  object.Key
}

// held is the reports whose events the settler holds, in order.
type held map[id][]report

// between is the change from the state before one event to the state after another of the
// same object, as if it were one.
func (h held) between(first, last *event.Event) observe.Change {
	change := observe.Change{Verb: event.Updated}
	for _, w := range h[id{first.Kind, first.Key}] {
		if w.event == first {
			change.Old, change.Kept, change.Classes = w.change.Old, w.change.Kept, union(w.event.Classes, w.classes)
		}
		if w.event == last {
			change.New, change.Classes = w.change.New, union(change.Classes, w.event.Classes)
			break
		}
	}
	return change
}

// compact drops the reports of an object that are not needed any more. It keeps the first, the
// last of those that the settler has, with which the cursor moves, and the last hidden one that
// came after it.
func (h held) compact(object id) {
	waiting := h[object]
	if len(waiting) < 3 {
		return
	}
	first, rest := waiting[0], waiting[1:]
	kept := make([]report, 1, 3)
	for i, w := range rest {
		followed := slices.ContainsFunc(rest[i+1:], func(later report) bool { return !later.hidden || w.hidden })
		switch {
		case !followed:
			kept = append(kept, w)
		case !w.hidden:
			first.classes = union(first.classes, w.event.Classes)
		}
	}
	kept[0] = first
	h[object] = kept
}

func union(a, b []event.Class) []event.Class {
	all := slices.Clone(a)
	for _, c := range b {
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// release removes the reports that an event stands for, and returns the last of them, if any.
func (h held) release(e *event.Event) (last report, ok bool) {
	object := id{e.Kind, e.Key}
	waiting := h[object]
	passed := len(waiting) // up to the last one that matches: a state may be reported twice
	for passed > 0 && !stands(e, waiting[passed-1].event) {
		passed--
	}
	// A hidden report goes with the one before it.
	for passed > 0 && passed < len(waiting) && waiting[passed].hidden {
		passed++
	}
	if passed == len(waiting) {
		delete(h, object)
	} else {
		h[object] = slices.Clone(waiting[passed:])
	}
	if passed == 0 {
		return report{}, false
	}
	return waiting[passed-1], true
}

// stands reports whether an event leads to the same state as another of its object.
func stands(e, other *event.Event) bool {
	return e.Version == other.Version && e.UID == other.UID && (e.Verb == event.Deleted) == (other.Verb == event.Deleted)
}

// stop limits versions to the first event of their follower that is held.
func (h held) stop(versions map[*follower]object.Version) {
	for _, waiting := range h {
		f := waiting[0].follower
		if version, moves := versions[f]; moves && version.AtLeast(waiting[0].before) {
			versions[f] = waiting[0].before
		}
	}
}
