// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/runs"
)

// segment is a part of the bar of an object, in which the controllers said the same about it.
type segment struct {
	X, Length int
	Class     string
	Text      string
}

// condition is what the last run of a controller said about an object. The higher one counts.
type condition int

const (
	fine condition = iota
	waiting
	failing
)

// change is a time from which on a condition holds.
type change struct {
	at   time.Time
	is   condition
	text string
}

// isFor reports whether the key of a run stands for an object.
func isFor(run *runs.Run, o runs.Object) bool {
	return run.Object.Kind == o.Kind && run.Object.Group == o.Group && run.Object.Ref().Key == o.Ref().Key
}

// bar returns what the record knows of an object over time. The part before the record is marked as not known, and the part
// up to now is wrong if the object is in trouble. An object that does not exist any more has a bar up to the last run for it.
func (d *drawing) bar(o runs.Object, state map[string]any, wrong bool) (all []segment) {
	changes, last := d.changes(o)
	from, to := d.from, d.to
	if at, err := time.Parse(time.RFC3339, (jsontree.Tree{Value: state}).Text("metadata", "creationTimestamp")); err == nil && at.After(from) {
		from = at
	}
	if state == nil {
		if to = last; to.IsZero() {
			return nil
		}
		wrong = false
	}
	add := func(since, until time.Time, class, text string) {
		x := d.x(since)
		if length := d.x(until) - x; length > 0 {
			all = append(all, segment{X: x, Length: length, Class: class, Text: plain(text)})
		}
	}
	if since := d.facts.Since; since.After(from) {
		until := earlier(to, since)
		add(from, until, "bar unknown", "not recorded: before "+until.Local().Format(time.TimeOnly))
		from = until
	}
	now := change{at: from, is: fine}
	for _, c := range changes {
		if c.at.After(from) {
			add(now.at, c.at, classOf(now.is), now.text)
			now = c
		} else {
			now = change{at: from, is: c.is, text: c.text}
		}
	}
	class, text := classOf(now.is), now.text
	if wrong {
		class = "bar wrong"
	}
	add(now.at, to, class, text)
	return all
}

// classOf returns how a condition is drawn.
func classOf(c condition) string {
	return [...]string{fine: "bar", waiting: "bar waits", failing: "bar fails"}[c]
}

// changes returns when the controllers began to say something else about an object, the oldest first, and when the last of
// them ran for it.
func (d *drawing) changes(o runs.Object) (all []change, last time.Time) {
	of := map[string]change{} // the last run of each controller
	worst := func() (c change) {
		for _, one := range of {
			if one.is > c.is || one.is == c.is && one.text < c.text {
				c.is, c.text = one.is, one.text
			}
		}
		return c
	}
	for _, traced := range slices.Backward(d.facts.Runs) { // the newest run is the first one
		run := &traced.Run
		if !isFor(run, o) {
			continue
		}
		before, said := worst(), change{text: fmt.Sprintf("from %s on: %s, %s", run.Began.Local().Format(time.TimeOnly), run.Controller, momentText(run))}
		switch {
		case run.Error != "":
			said.is = failing
		case len(run.Reasons) > 0:
			said.is = waiting
		default:
			said.text = ""
		}
		of[run.Controller] = said
		if now := worst(); now != before {
			now.at = run.Began
			all = append(all, now)
		}
		if run.Last.After(last) {
			last = run.Last
		}
	}
	return all, last
}

// scrubSteps is in how many steps the keys go through the timeline.
const scrubSteps = 100

// scrubber returns the control that chooses a time.
func (d *drawing) scrubber() scrubber {
	step := max(d.to.Sub(d.from)/scrubSteps, time.Second).Truncate(time.Second)
	s := scrubber{Min: d.from.UnixMilli(), Step: step.Milliseconds(), Text: "now"}
	// The last step ends at now or after it, so that it means now.
	steps := (d.to.UnixMilli() - s.Min + s.Step - 1) / s.Step
	s.Max = s.Min + steps*s.Step
	s.Value = s.Max
	if at := d.chosen.at; !at.IsZero() {
		s.Value, s.Text = min(max(at.UnixMilli(), s.Min), s.Max), at.Local().Format(time.TimeOnly)
	}
	if d.chosen.run.number != 0 {
		s.Run = d.chosen.run.String()
	}
	return s
}
