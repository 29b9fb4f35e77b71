// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/runs"
)

// hotWrites is how many runs in a row that write without effect are a hot loop. The runs that are read of an object are those of all
// controllers, so it is less than hotRuns.
const hotWrites = 20

// repeats returns how many of the newest runs of a controller for the object have written in vain, and in which way: the
// server changed nothing, or each write made the next run write the same fields. It is 0 if the runs are no hot loop.
func (t *teller) repeats(controller string) (times int, how string) {
	var all []*runs.Run // the newest first
	for i := range t.facts.Runs {
		if run := &t.facts.Runs[i].Run; run.Controller == controller && sameObject(run.Object, t.facts.Object) {
			all = append(all, run)
		}
	}
	for _, way := range []struct {
		is   func(run, before *runs.Run) bool
		text func(*runs.Write) string
	}{
		{inVain, func(w *runs.Write) string { return "each writes " + w.Object.String() + " and changes nothing" }},
		{causesItself, func(w *runs.Write) string {
			return "each because of its own change of " + strings.Join(elements(w.Fields)[:min(len(w.Fields), 1)], "") + " of " + w.Object.String()
		}},
	} {
		n := 0
		for n+1 < len(all) && way.is(all[n], all[n+1]) {
			n++
		}
		if n >= hotWrites && all[0].Last.Sub(all[n].Began) < time.Duration(n)*hotTime && t.facts.Now.Sub(all[0].Last) < time.Minute {
			return n + 1, way.text(&all[0].Writes[0])
		}
	}
	return 0, ""
}

// inVain reports whether the server changed nothing for the writes of a run: it answered each with the version that the run before
// was answered with, or with none.
func inVain(run, before *runs.Run) bool {
	return len(run.Writes) > 0 && run.MoreWrites == 0 && !slices.ContainsFunc(run.Writes, func(w runs.Write) bool {
		changes := w.Verb == "update" || w.Verb == "patch" || w.Verb == "apply"
		same := func(b runs.Write) bool { return b.Version == w.Version && sameObject(b.Object, w.Object) }
		return !changes || w.Code != 0 || w.Unknown || w.Version != "" && !slices.ContainsFunc(before.Writes, same)
	})
}

// causesItself reports whether the only causes of a run are writes of the run before, and it has written the same fields again.
func causesItself(run, before *runs.Run) bool {
	if len(run.Writes) == 0 || len(run.Causes) == 0 || run.More > 0 || len(run.Writes) != len(before.Writes) {
		return false
	}
	for _, c := range run.Causes {
		if !slices.ContainsFunc(before.Writes, func(w runs.Write) bool {
			return w.Version != "" && w.Version == c.Version && sameObject(w.Object, c.Object)
		}) {
			return false
		}
	}
	for i, w := range run.Writes {
		b := &before.Writes[i]
		if w.Version == "" || len(w.Fields) == 0 || w.Verb != b.Verb || !sameObject(w.Object, b.Object) || !slices.Equal(w.Fields, b.Fields) {
			return false
		}
	}
	return true
}
