// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// mostSteps is how many steps of the chain are named.
const mostSteps = 12

// chainOf returns the steps that led to the newest run that did more than write a status, from the first cause on. If
// there is none, it is the newest run that wrote anything.
//
// If a controller waits because of the value of a field, it is the edit of this field. Of an object that is gone it ends with the deletion.
// If no run is known, it is the last edit of the object, by its field managers.
func (t *teller) chainOf() []Step {
	if steps := t.edited(); steps != nil {
		return steps
	}
	deletion := t.deletionByOthers()
	newest := t.newestToTell()
	if len(deletion) > 0 {
		newest = slices.IndexFunc(t.facts.Runs, func(r Traced) bool { return slices.ContainsFunc(r.Writes, t.creates) })
	}
	switch {
	case newest < 0 && len(deletion) == 0:
		return t.lastEdit()
	case newest < 0:
		return deletion
	}
	back := t.backFrom(newest)
	slices.Reverse(back)
	back = append(back, deletion...)
	for i := range back {
		back[i].Depth = i
	}
	return back
}

// lastEdit returns the last change of the object that its field managers tell of, or its creation. Those of its status do not count,
// as of Pods these are the kubelet's.
func (t *teller) lastEdit() []Step {
	writer, found := writerOf("", t.facts.State, t.facts.Now)
	if !found {
		return nil
	}
	return []Step{{At: *writer.At, Actor: writer.Manager, Probably: true, Text: t.verbOf(writer.Manager, *writer.At) + " " + t.facts.Object.String() + ": " + writer.text()}}
}

// newestToTell returns the index of the newest run that did more than write a status, or else of the newest one that wrote anything.
func (t *teller) newestToTell() int {
	newest := slices.IndexFunc(t.facts.Runs, func(r Traced) bool {
		return slices.ContainsFunc(r.Writes, func(w runs.Write) bool { return w.Subresource == "" && !w.Refused() })
	})
	if newest < 0 {
		newest = slices.IndexFunc(t.facts.Runs, func(r Traced) bool { return len(r.Writes) > 0 })
	}
	return newest
}

// backFrom returns the steps from a run back to the first cause.
func (t *teller) backFrom(newest int) (back []Step) {
	run, origins := &t.facts.Runs[newest].Run, t.facts.Runs[newest].Origins
	known := map[runs.Identity]bool{} // writes that change nothing share a version, so a run may seem to be its own cause
	for !known[run.Identity()] {
		known[run.Identity()] = true
		if len(back) == 0 || actsOn(run) {
			back = addStep(back, Step{At: run.Began, Actor: run.Controller, Run: run.Number, Text: writesText(run)})
		}
		next := firstKnown(origins, run)
		if next != nil && len(back) >= mostSteps {
			back = append(back, Step{At: next.Run.Began, Actor: next.Run.Controller, Run: next.Run.Number, Text: writesText(next.Run) + " (what led to this is left out)"})
			break
		}
		if next == nil {
			o := firstChange(origins)
			if o == nil {
				break
			}
			back = append(back, t.stepOfOthers(o, run.Began))
			creator := t.creatorOf(o.Cause.Object, run)
			if creator == nil || len(back) >= mostSteps {
				break
			}
			run, origins = &creator.Run, creator.Origins
			continue
		}
		run, origins = next.Run, t.originsOf(next)
	}
	return back
}

// actsOn reports whether a run did more than write a status: a run that did not is no step between others.
func actsOn(run *runs.Run) bool {
	return slices.ContainsFunc(run.Writes, func(w runs.Write) bool { return w.Subresource == "" })
}

// creatorOf returns the recorded run before another one that created an object: what led to the object also led to its
// changes by other programs. It is nil for the object itself, whose last change is the first cause.
func (t *teller) creatorOf(o runs.Object, before *runs.Run) *Traced {
	if sameObject(o, t.facts.Object) {
		return nil
	}
	for i := range t.facts.Runs {
		run := &t.facts.Runs[i]
		creates := func(w runs.Write) bool {
			return w.Verb == "create" && w.Code == 0 && o.UID != "" && w.Object.UID == o.UID
		}
		if run.Began.Before(before.Began) && slices.ContainsFunc(run.Writes, creates) {
			return run
		}
	}
	return nil
}

// addStep adds a step, or counts it in the one before: a retry that failed again says nothing new.
func addStep(back []Step, s Step) []Step {
	if n := len(back); n > 0 && back[n-1].Actor == s.Actor && back[n-1].Text == s.Text {
		s.Times = max(back[n-1].Times, 1) + 1
		return append(back[:n-1], s)
	}
	return append(back, s)
}

// originsOf returns the origins of the run of an origin. A record names those of each run once, so they may be with the
// run itself.
func (t *teller) originsOf(o *runs.Origin) []runs.Origin {
	if len(o.Origins) > 0 {
		return o.Origins
	}
	for i := range t.facts.Runs {
		if t.facts.Runs[i].Run.Identity() == o.Run.Identity() {
			return t.facts.Runs[i].Origins
		}
	}
	return nil
}

// firstKnown returns the origin whose run is recorded and that leads furthest back; nil if none is recorded.
//
// Runs of other controllers that did more than write a status come before the rest: a loop that undoes a change also runs for what its own
// earlier run did, such as for the end of a Pod that it deleted, and that is not why it runs.
func firstKnown(all []runs.Origin, of *runs.Run) (found *runs.Origin) {
	asked := func(o *runs.Origin) bool { return o.Run.Controller != of.Controller && actsOn(o.Run) }
	for i := range all {
		o := &all[i]
		switch {
		case o.Run == nil:
		case found == nil, asked(o) && !asked(found), asked(o) == asked(found) && o.Run.Began.Before(found.Run.Began):
			found = o
		}
	}
	return found
}

// firstChange returns the first origin that is a change of an object.
func firstChange(all []runs.Origin) *runs.Origin {
	for i := range all {
		if all[i].Cause.Object != (runs.Object{}) {
			return &all[i]
		}
	}
	return nil
}

// stepOfOthers is a change that no controller of the record made.
func (t *teller) stepOfOthers(o *runs.Origin, before time.Time) Step {
	verb := strings.ToLower(o.Cause.Verb)
	if o.Cause.Verb == workqueue.Added {
		verb = "created"
	}
	s := Step{At: before, Actor: "another program", Text: verb + " " + o.Cause.Object.String()}
	state := t.stateOf(o.Cause.Object)
	writer, found := writerOf(o.Cause.Object.Kind, state, before)
	if created, known := creationOf(state); known && o.Cause.Verb == workqueue.Added {
		// An informer also adds the objects that were there when it began.
		s.At = created
		writer, found = firstWriterOf(state, created)
	}
	if found {
		s.Actor, s.Probably, s.At = writer.Manager, true, *writer.At
		s.Text += ": " + writer.text()
	}
	return s
}

// stateOf returns the state of the object, or of one above or below it; nil if it is not known.
func (t *teller) stateOf(o runs.Object) map[string]any {
	if o.UID == t.facts.Object.UID {
		return t.facts.State
	}
	for _, parts := range [][]Part{t.facts.Above, t.facts.Below} {
		for i := range parts {
			if parts[i].Object.UID == o.UID {
				return parts[i].State
			}
		}
	}
	return nil
}

// writesText names the writes of a run, those of one verb and kind together.
func writesText(run *runs.Run) string {
	if len(run.Writes) == 0 {
		return "ran and wrote nothing"
	}
	type sort struct{ verb, kind, subresource string }
	var order []sort
	of := map[sort][]*runs.Write{}
	for i := range run.Writes {
		w := &run.Writes[i]
		k := sort{w.Verb, w.Object.Kind, w.Subresource}
		if of[k] == nil {
			order = append(order, k)
		}
		of[k] = append(of[k], w)
	}
	var parts []string
	for _, k := range order {
		parts = append(parts, oneSort(k.verb, of[k], k.subresource, run.Reasons))
	}
	return strings.Join(parts, "; ")
}
