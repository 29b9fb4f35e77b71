// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// edit is a change that no recorded run made.
type edit struct {
	id     string
	object runs.Object
	verb   string // of a cause: Added, Updated, Deleted
	at     time.Time
	author *FieldOwner // that the managedFields name; nil: not known
	// begins is set for a change that a user may have made. Reports about the state of an object go on with what began it.
	begins bool
}

// editOf returns the change of a cause that no recorded run made.
func (h *history) editOf(cause runs.Cause, by time.Time) *edit {
	e := &edit{id: fmt.Sprintf("change-%s-%s", cause.Object.UID, cause.Version), object: cause.Object, verb: cause.Verb, at: by}
	known := h.known[cause.Object.UID]
	switch {
	case cause.Verb == workqueue.Deleted:
		e.id, e.begins = fmt.Sprintf("deletion-%s", cause.Object.UID), h.created[cause.Object.UID] == nil
	case known == nil:
		e.begins = cause.Verb == workqueue.Added
	default:
		if author := h.authorOf(known, by); author != nil {
			return editBy(known, author)
		}
		e.begins = cause.Verb == workqueue.Added && !h.createdBefore(known)
	}
	return e
}

// createdBefore reports whether an object is older than the time that the answer is about: it is new to an informer that
// has begun to watch, and nothing happened to it.
func (h *history) createdBefore(k *Known) bool {
	at, known := creationOf(k.State)
	return known && at.Before(h.facts.Since)
}

// editBy returns the change that an entry of managedFields shows.
func editBy(k *Known, author *FieldOwner) *edit {
	e := &edit{
		id:     fmt.Sprintf("edit-%s-%s-%d", k.Object.UID, author.Manager, author.At.Unix()),
		object: k.Object, verb: workqueue.Updated, at: *author.At, author: author, begins: author.Subresource != "status",
	}
	if e.begins && created(k.State, author.Manager, *author.At) {
		e.verb = workqueue.Added
	}
	return e
}

// authorOf returns the entry of managedFields of the change that an informer noticed at a time: the newest one by then
// that no recorded run wrote. Times of managedFields are in whole seconds.
func (h *history) authorOf(k *Known, noticed time.Time) (found *FieldOwner) {
	for _, o := range ownersOf(k.State, math.MaxInt) {
		if o.At == nil || o.At.After(noticed.Add(time.Second)) || h.recorded(k.Object, &o) {
			continue
		}
		if found == nil || o.At.After(*found.At) || o.At.Equal(*found.At) && found.Subresource != "" {
			found = &o
		}
	}
	return found
}

// sameTime is how far apart the time of a run may be from the time in managedFields of what it wrote, in whole seconds.
const sameTime = 2 * time.Second

// recorded reports whether a recorded run made the change that an entry of managedFields shows.
func (h *history) recorded(o runs.Object, entry *FieldOwner) bool {
	return slices.ContainsFunc(h.writes[nameless(o)], func(w writeAt) bool {
		return w.at.Sub(*entry.At).Abs() <= sameTime && wroteFields(w.Write, entry)
	})
}

// wroteFields reports whether a write changed fields of an entry.
func wroteFields(w *runs.Write, entry *FieldOwner) bool {
	switch {
	case w.Subresource != entry.Subresource, w.Code != 0, w.Manager != "" && w.Manager != entry.Manager:
		return false
	case w.Manager != "" || w.Verb == "create" || len(w.Fields) == 0:
		return true
	}
	return slices.ContainsFunc(w.Fields, func(field string) bool {
		return slices.ContainsFunc(entry.Fields, func(path string) bool { return strings.HasPrefix(field, path) || strings.HasPrefix(path, field) })
	})
}

// addEdits adds the changes that only the managedFields of objects show.
func (h *history) addEdits() {
	for i := range h.facts.Objects {
		k := &h.facts.Objects[i]
		for _, o := range ownersOf(k.State, math.MaxInt) {
			if o.At == nil || o.At.Before(h.facts.Since) || !h.shows(k.Object) || h.recorded(k.Object, &o) {
				continue
			}
			h.groupOfEdit(editBy(k, &o))
		}
	}
}

// groupOfEdit returns the group of a change, with the line of the change in it.
func (h *history) groupOfEdit(e *edit) *Group {
	if g := h.edits[e.id]; g != nil {
		return g
	}
	g := h.created[e.object.UID]
	if e.begins || g == nil {
		g = &Group{ID: e.id, Object: e.object, Actor: e.actor(), Probably: e.author != nil, edit: e}
		h.groups = append(h.groups, g)
	}
	h.edits[e.id] = g
	if h.shows(e.object) {
		h.put(g, Change{At: e.at, Actor: e.actor(), Probably: e.author != nil, Object: e.object, Text: e.text(), Count: 1, Deleted: e.verb == workqueue.Deleted})
	}
	return g
}

// unnamed is the actor of a change whose author is not known.
const unnamed = "another program"

func (e *edit) actor() string {
	if e.author == nil {
		return unnamed
	}
	return e.author.Manager
}

// text is the line of a change.
func (e *edit) text() string {
	verb := map[string]string{workqueue.Added: "created", workqueue.Deleted: "deleted"}[e.verb]
	text := cmp.Or(verb, "changed") + " " + e.object.String()
	if e.author == nil {
		return text
	}
	if e.author.Subresource != "" {
		text = cmp.Or(verb, "changed") + " the " + e.author.Subresource + " of " + e.object.String()
	}
	return text + ": " + e.author.text()
}
