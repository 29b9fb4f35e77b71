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
	said, _ := t.disruption()
	for i := range t.facts.Runs {
		run := &t.facts.Runs[i].Run
		if slices.ContainsFunc(run.Causes, t.wasDeleted) {
			by := "no controller of the record deleted it, so a user or another program did"
			if said != "" {
				by = said
			}
			return text + fmt.Sprintf(": %s; %s noticed it at %s", by, run.Controller, clock(run.Began))
		}
	}
	if said != "" {
		text += ": " + said
	}
	return text
}

// codePodDisrupted is the code with which the disruption controller repeats the condition DisruptionTarget of a Pod.
const codePodDisrupted = "PodIsDisrupted"

// disruptionEvents are the reasons of Events which say that a Pod is ended from outside.
// Sources: k8s.io/kubernetes/pkg/scheduler/framework/preemption; pkg/controller/tainteviction; pkg/kubelet/eviction.
var disruptionEvents = []string{"Preempted", "TaintManagerEviction", "Evicted"}

// disruption says why and when a Pod was ended that no recorded controller has deleted, as a run or an Event says it; empty if none does.
func (t *teller) disruption() (said string, at time.Time) {
	for i := range t.facts.Runs {
		run := &t.facts.Runs[i].Run
		for k := range run.Reasons {
			if r := &run.Reasons[k]; r.Code == codePodDisrupted && sameObject(run.Object, t.facts.Object) {
				return fmt.Sprintf("%s said at %s: %s", run.Controller, clock(run.Began), r.Sentence()), run.Began
			}
		}
	}
	for i := range t.facts.Events {
		if e := &t.facts.Events[i]; slices.Contains(disruptionEvents, e.Reason) {
			return fmt.Sprintf("the Event %s of %s says: %s", e.Reason, clock(e.Last), strings.TrimRight(e.Note, ". ")), e.Last
		}
	}
	return "", time.Time{}
}

// deletionByOthers returns the steps that end the chain of an object which is gone, and which no recorded controller has deleted: the deletion,
// and the run that was the first to notice it.
func (t *teller) deletionByOthers() []Step {
	if t.facts.State != nil || slices.ContainsFunc(t.facts.Runs, func(r Traced) bool { return slices.ContainsFunc(r.Writes, t.deletes) }) {
		return nil
	}
	var first *runs.Run
	for i := range t.facts.Runs {
		if run := &t.facts.Runs[i].Run; slices.ContainsFunc(run.Causes, t.wasDeleted) && (first == nil || run.Began.Before(first.Began)) {
			first = run
		}
	}
	deletion := Step{Actor: "another program", Text: "deleted " + t.facts.Object.String()}
	said, at := t.disruption()
	if said != "" {
		deletion.At, deletion.Text = at, deletion.Text+": "+said
	}
	switch {
	case first == nil && said == "":
		return nil
	case first == nil:
		return []Step{deletion}
	case said == "":
		deletion.At = first.Began
	}
	noticed := Step{At: first.Began, Actor: first.Controller, Run: first.Number, Text: "noticed it"}
	if len(first.Writes) > 0 {
		noticed.Text += ", and " + writesText(first)
	}
	return []Step{deletion, noticed}
}

// creates reports whether a write created the object.
func (t *teller) creates(w runs.Write) bool {
	return w.Verb == "create" && w.Code == 0 && sameObject(w.Object, t.facts.Object)
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
	case own != nil && own.Reason.Code != codePodDisrupted: // which the condition says
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
