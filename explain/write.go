// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/printable"
)

// mostLine is how many bytes of a line are written: the status of an object may quote a megabyte.
const mostLine = 2000

// Write writes an answer for people, in local time. Characters that steer terminals are escaped, and long lines are cut off.
func (a *Answer) Write(to io.Writer) error {
	w := &writer{to: to}
	w.line("%s", a.Object)
	w.line("%s", a.Sentence)
	w.section("WHY IT IS SO", len(a.Chain))
	for _, s := range a.Chain {
		w.line("  %s  %s%s", s.At.Local().Format(time.TimeOnly), strings.Repeat("  ", s.Depth), stepText(&s))
	}
	w.section("NOT DONE, AND WHY", len(a.NotDone))
	for _, n := range a.NotDone {
		text := fmt.Sprintf("  %s  %s", n.Controller, n.Text)
		if n.NextLook != nil {
			text += "; looks again at " + n.NextLook.Local().Format(time.TimeOnly)
		}
		w.line("%s", text)
	}
	w.section("FIGHTS", len(a.Fights))
	for i := range a.Fights {
		w.line("  %s  %s", a.Fights[i].Field, a.Fights[i].text())
	}
	w.section("IN TROUBLE BELOW IT", len(a.Parts))
	for _, p := range a.Parts {
		for _, text := range p.Texts {
			w.line("  %s %s: %s", p.Object.Kind, p.Object.Name, text)
		}
		if p.Alike > 0 {
			w.line("  %s", alike(p.Alike))
		}
	}
	switch a.MoreParts {
	case 0:
	case 1:
		w.line("  1 more object below it is in trouble")
	default:
		w.line("  %d more objects below it are in trouble", a.MoreParts)
	}
	w.section("LOOPS", len(a.Loops))
	for _, l := range a.Loops {
		w.line("  %s  %s", l.Name(), loopText(a.AsOf, &l))
	}
	w.section("WHO OWNS WHICH FIELDS", len(a.Fields))
	for _, o := range a.Fields {
		w.line("  %s  %s", ownerText(a.AsOf, &o), o.text())
	}
	w.section("EVENTS", len(a.Events))
	for _, e := range a.Events {
		w.line("  %s ago  %s %s", ago(a.AsOf, e.Last), e.Reason, e.Note)
	}
	w.section("NOT KNOWN", len(a.Unknown))
	for _, text := range a.Unknown {
		w.line("  %s", text)
	}
	return w.err
}

// text names the newest writers of a field, each with the times of its changes.
func (f *Fight) text() string {
	var actors []string
	times := map[string][]string{}
	for _, w := range f.Writes {
		if times[w.Actor] == nil {
			actors = append(actors, w.Actor)
		}
		times[w.Actor] = append(times[w.Actor], clock(w.At))
	}
	for _, other := range f.Others {
		if times[other] == nil {
			actors = append(actors, other)
		}
	}
	slices.Sort(actors)
	parts := make([]string, 0, len(actors))
	for _, actor := range actors {
		part := actor
		if at := times[actor]; len(at) > 0 {
			part += " at " + strings.Join(at, ", ")
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

func stepText(s *Step) string {
	actor := s.Actor
	if s.Probably {
		actor = "probably " + actor
	}
	if s.Run != 0 {
		actor = fmt.Sprintf("%s, run %d", actor, s.Run)
	}
	if s.Times > 1 {
		return fmt.Sprintf("%s  %s, %d times", actor, s.Text, s.Times)
	}
	return actor + "  " + s.Text
}

func ownerText(now time.Time, o *FieldOwner) string {
	text := o.Manager
	if o.Subresource != "" {
		text += " (" + o.Subresource + ")"
	}
	if o.At != nil {
		text += ", " + ago(now, *o.At) + " ago"
	}
	return text
}

// writer writes lines, and keeps the first error.
type writer struct {
	to  io.Writer
	err error
}

func (w *writer) line(format string, args ...any) {
	if _, err := fmt.Fprintln(w.to, printable.Line(fmt.Sprintf(format, args...), mostLine)); err != nil && w.err == nil {
		w.err = err
	}
}

// section begins a section that has lines.
func (w *writer) section(title string, lines int) {
	if lines > 0 && w.err == nil {
		_, w.err = fmt.Fprintf(w.to, "\n%s\n", title)
	}
}
