// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/runs"
)

// mostSteps is how many steps of the chain are named.
const mostSteps = 12

// chainOf returns the steps that led to the newest run that wrote something, from the first cause on.
func (t *teller) chainOf() []Step {
	newest := slices.IndexFunc(t.facts.Runs, func(r Traced) bool { return len(r.Writes) > 0 })
	if newest < 0 {
		return nil
	}
	var back []Step // from the newest run to the first cause
	run, origins := &t.facts.Runs[newest].Run, t.facts.Runs[newest].Origins
	for {
		back = append(back, Step{At: run.Began, Actor: run.Controller, Run: run.Number, Text: writesText(run)})
		next := firstKnown(origins)
		if next == nil || len(back) == mostSteps {
			if o := change(origins); o != nil {
				back = append(back, t.stepOfOthers(o, run.Began))
			}
			break
		}
		run, origins = next.Run, next.Origins
	}
	slices.Reverse(back)
	for i := range back {
		back[i].Depth = i
	}
	return back
}

// firstKnown returns the origin whose run is recorded and that leads furthest back; nil if none is recorded.
func firstKnown(all []runs.Origin) (found *runs.Origin) {
	for i := range all {
		if all[i].Run != nil && (found == nil || all[i].Run.Began.Before(found.Run.Began)) {
			found = &all[i]
		}
	}
	return found
}

// change returns the first origin that is a change of an object.
func change(all []runs.Origin) *runs.Origin {
	for i := range all {
		if all[i].Cause.Object != (runs.Object{}) {
			return &all[i]
		}
	}
	return nil
}

// stepOfOthers is a change that no controller of the record made.
func (t *teller) stepOfOthers(o *runs.Origin, before time.Time) Step {
	s := Step{At: before, Actor: "another program", Text: strings.ToLower(o.Cause.Verb) + " " + o.Cause.Object.String()}
	state := t.facts.Around[string(o.Cause.Object.UID)]
	if o.Cause.Object.UID == t.facts.Object.UID {
		state = t.facts.State
	}
	if writer, found := writerOf(state, before); found {
		s.Actor, s.Probably, s.At = writer.Manager, true, *writer.At
		s.Text += ": " + writer.text()
	}
	return s
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
		parts = append(parts, oneSort(k.verb, of[k], k.subresource))
	}
	return strings.Join(parts, "; ")
}
