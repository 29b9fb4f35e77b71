// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/internal/managedfields"
)

// decidingFields are the fields whose values controllers state as reasons, by the codes of the reasons.
var decidingFields = map[string]string{
	"RolloutPaused":   "spec.paused",
	"Suspended":       "spec.suspend",
	"KeptByOnDelete":  "spec.updateStrategy.type",
	"UpdatedOnDelete": "spec.updateStrategy.type",
	"HeldByPartition": "spec.updateStrategy.rollingUpdate.partition",
}

// edited returns the steps from the edit of a field to the reason that a controller states because of its value: the edit that has paused
// a rollout, and not the creation of the Deployment. It is nil if the reason is another one, or if no program owns the field.
func (t *teller) edited() []Step {
	own := t.ownReason()
	if own == nil || decidingFields[own.Reason.Code] == "" {
		return nil
	}
	field := decidingFields[own.Reason.Code]
	writer, found := lastOwner(t.facts.State, field)
	if !found {
		return nil
	}
	edit := Step{At: writer.Time, Actor: writer.Manager, Probably: true, Text: t.verbOf(writer.Manager, writer.Time) + " " + t.facts.Object.String() + ": " + field}
	if edit.At.After(own.Since) {
		edit.At = own.Since // the program has also changed a field since
	}
	stated := Step{At: own.Since, Depth: 1, Actor: own.Controller, Text: "waits: " + own.Reason.Sentence()}
	for i := range t.facts.Present {
		if run := &t.facts.Present[i]; run.Controller == own.Controller && run.Key == own.Key {
			stated.Run = run.Number
		}
	}
	return []Step{edit, stated}
}

// verbOf tells whether a field manager has created the object or changed it, by the time of what it wrote.
func (t *teller) verbOf(manager string, at time.Time) string {
	if created(t.facts.State, manager, at) {
		return "created"
	}
	return "changed"
}

// created reports whether what a field manager wrote at a time is the object, as it was created.
func created(state map[string]any, manager string, at time.Time) bool {
	creation, known := creationOf(state)
	if !known {
		return false
	}
	first, found := firstWriterOf(state, creation)
	return found && first.Manager == manager && first.At.Equal(at)
}

// creationOf returns when an object was created.
func creationOf(state map[string]any) (at time.Time, known bool) {
	at, err := time.Parse(time.RFC3339, jsontree.Tree{Value: state}.Text("metadata", "creationTimestamp"))
	return at, err == nil
}

// lastOwner returns the newest field manager that owns a field of an object.
func lastOwner(state map[string]any, field string) (last managedfields.Entry, found bool) {
	for _, e := range managedfields.Of(state) {
		if !e.Time.IsZero() && (!found || e.Time.After(last.Time)) && e.Owns(field) {
			last, found = e, true
		}
	}
	return last, found
}
