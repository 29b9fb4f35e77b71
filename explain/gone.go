// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// gone says who deleted the object and why, as far as that is known.
func (t *teller) gone() string {
	text := t.facts.Object.String() + " does not exist"
	for i := range t.facts.Runs {
		run := &t.facts.Runs[i].Run
		if slices.ContainsFunc(run.Writes, t.deletes) {
			why := t.whyDeleted(run)
			if why != "" {
				why = ", because " + why
			}
			return fmt.Sprintf("%s: %s deleted it at %s%s", text, run.Controller, clock(run.Began), why)
		}
	}
	for i := range t.facts.Runs {
		run := &t.facts.Runs[i].Run
		if slices.ContainsFunc(run.Causes, t.wasDeleted) {
			return text + fmt.Sprintf(": no controller of the record deleted it, so a user or another program did; %s noticed it at %s", run.Controller, clock(run.Began))
		}
	}
	return text
}

// deletes reports whether a write deleted the object.
func (t *teller) deletes(w runs.Write) bool {
	return w.Verb == "delete" && !w.Refused() && sameObject(w.Object, t.facts.Object)
}

// wasDeleted reports whether a cause is the deletion of the object.
func (t *teller) wasDeleted(c runs.Cause) bool {
	return c.Verb == workqueue.Deleted && sameObject(c.Object, t.facts.Object)
}

// whyDeleted says why a run deleted the object: as the controller has stated it, or because of the deletion that caused the
// run.
func (t *teller) whyDeleted(run *runs.Run) string {
	for i := range run.Reasons {
		if r := &run.Reasons[i]; !r.Normal && (r.About == runs.Object{} || sameObject(r.About, t.facts.Object)) {
			return r.Sentence()
		}
	}
	for _, c := range run.Causes {
		if c.Verb == workqueue.Deleted && c.Object.Name != "" && !sameObject(c.Object, t.facts.Object) {
			return c.Object.String() + " was deleted"
		}
	}
	return ""
}

// deletionOf says that an object is being deleted. For a Pod that is evicted it repeats the condition DisruptionTarget.
func deletionOf(state jsontree.Tree) string {
	c := state.Named("type", "DisruptionTarget", "status", "conditions")
	if c.Text("status") != "True" {
		return "it is being deleted"
	}
	return fmt.Sprintf("it is being deleted (%s: %s)", c.Text("reason"), c.Text("message"))
}

// deletionWaits says what an object waits for that is being deleted.
func deletionWaits(own *NotDone, state jsontree.Tree) string {
	finalizers, _ := state.At("metadata", "finalizers").Value.([]any)
	switch {
	case own != nil:
		return own.Reason.Sentence()
	case len(finalizers) > 0:
		names := make([]string, 0, len(finalizers))
		for _, f := range finalizers {
			names = append(names, fmt.Sprint(f))
		}
		if len(names) == 1 {
			return "it waits until the finalizer " + names[0] + " is removed"
		}
		return "it waits until the finalizers " + strings.Join(names, ", ") + " are removed"
	}
	return ""
}

// clock is a time of the day, in local time.
func clock(at time.Time) string { return at.Local().Format(time.TimeOnly) }
