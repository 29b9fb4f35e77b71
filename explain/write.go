// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
)

// Write writes an answer for people, in local time. Text that comes from objects has no control characters.
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
	w.section("IN TROUBLE BELOW IT", len(a.Parts))
	for _, p := range a.Parts {
		for _, text := range p.Texts {
			w.line("  %s %s: %s", p.Object.Kind, p.Object.Name, text)
		}
		if p.Alike > 0 {
			w.line("  %d more say the same", p.Alike)
		}
	}
	w.section("LOOPS", len(a.Loops))
	for _, l := range a.Loops {
		w.line("  %s  %s", l.Controller, loopText(a.AsOf, &l))
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

func loopText(now time.Time, l *Loop) string {
	text := fmt.Sprintf("%s, the last run %s ago", l.Outcome, ago(now, l.Last))
	if l.Error != "" {
		text += fmt.Sprintf(", attempt %d: %s", l.Attempt+1, l.Error)
	}
	if l.Idle > 0 {
		text += fmt.Sprintf(", %d runs in a row changed nothing", l.Idle)
	}
	if l.NextLook != nil && l.NextLook.After(now) {
		text += ", runs again at " + l.NextLook.Local().Format(time.TimeOnly)
	}
	return text
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
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, fmt.Sprintf(format, args...))
	if _, err := fmt.Fprintln(w.to, text); err != nil && w.err == nil {
		w.err = err
	}
}

// section begins a section that has lines.
func (w *writer) section(title string, lines int) {
	if lines > 0 && w.err == nil {
		_, w.err = fmt.Fprintf(w.to, "\n%s\n", title)
	}
}
