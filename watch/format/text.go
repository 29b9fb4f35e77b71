// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
)

const (
	clock = "15:04:05.000"
	// widestName is the widest that the column of the names becomes; a longer name moves its own line.
	widestName = 40
	// firstName is the width of that column at the start on a wide terminal. Most names with
	// their namespaces fit, except those of Pods, so that the first lines are aligned too.
	firstName, wideTerminal = 22, 120
	// widestValue is how many columns a single value has at most.
	widestValue = 60
	// leastWords is how many columns the change has at least, however narrow the line is.
	leastWords = 40
	// leastBegan is how many columns there must be for what began merged changes.
	leastBegan = 15
)

// columns are the widths of the columns. They grow with the texts in them.
type columns struct{ kind, name int }

// text writes an event as a line.
func (w *Writer) text(e *event.Event) {
	kind, name := kindOf(e), nameOf(e)
	w.columns.kind = max(w.columns.kind, width(kind))
	if width(name) <= widestName {
		w.columns.name = max(w.columns.name, width(name))
	}
	at := e.Time.In(w.options.Zone).Format(clock)
	verb := clean(string(e.Verb))
	before := strings.Join([]string{
		w.paint(dim, at), w.paint(verbColours[e.Verb], pad(verb, 8)), pad(kind, w.columns.kind), pad(name, w.columns.name),
	}, "  ")
	taken := len(clock) + 8 + w.columns.kind + max(w.columns.name, width(name)) + 4*2
	after := notes(e)

	said := Words(e)
	if w.options.Width > 0 {
		said = fit(e, said, max(w.options.Width-taken-width(after), leastWords))
	}
	if said == "" {
		after = strings.TrimLeft(after, " ")
	}
	line := before + "  " + said
	if after != "" {
		line += w.paint(dim, after)
	}
	w.buffer.WriteString(strings.TrimRight(line, " ") + "\n")
}

// fit shortens the words for an event: first the values in them, then the whole. Of merged changes,
// what became of the object is kept rather than what began them.
func fit(e *event.Event, said string, left int) string {
	for columns := widestValue / 2; columns >= 15 && width(said) > left; columns -= 5 {
		said = words(e, columns)
	}
	if width(said) <= left {
		return said
	}
	summary := clean(e.Summary)
	began, merged := strings.CutSuffix(said, ", "+summary)
	if room := left - width(", "+summary); summary != "" && merged {
		if room < leastBegan {
			return cut(summary, left)
		}
		return cut(began, room) + ", " + summary
	}
	return cut(said, left)
}

// kindOf returns the kind as kubectl names it: pod, deployment.apps.
func kindOf(e *event.Event) string {
	kind := strings.ToLower(e.Kind.Kind)
	if kind == "" {
		kind = e.Kind.Resource
	}
	if e.Kind.Group != "" {
		kind += "." + e.Kind.Group
	}
	return clean(kind)
}

func nameOf(e *event.Event) string { return clean(e.Key.String()) }

// notes returns the authors of a change, and how it was found.
func notes(e *event.Event) string {
	var b strings.Builder
	if by := Authors(e); by != "" {
		b.WriteString(" (by " + by + ")")
	}
	if c := e.Cause; c != nil && c.Object != "" {
		b.WriteString(" because " + clean(c.Object) + " was " + clean(c.Verb))
		if c.Change != "" {
			b.WriteString(" (" + clean(c.Change) + ")")
		}
	}
	if e.Merged > 1 && e.Summary == "" {
		fmt.Fprintf(&b, " [%d changes%s]", e.Merged, took(e))
	}
	if e.Missed {
		b.WriteString(" [while away]")
	}
	if e.Stale {
		b.WriteString(" [last state not seen]")
	}
	return b.String()
}

func took(e *event.Event) string {
	if e.Since.IsZero() || e.Time.Sub(e.Since) < 50*time.Millisecond {
		return ""
	}
	return " in " + duration(e.Time.Sub(e.Since))
}

// duration returns "0.4 s", "8 s", "12 min", "3 h", "5 d".
func duration(d time.Duration) string {
	switch {
	case d < 950*time.Millisecond:
		return fmt.Sprintf("%.1f s", max(d, 0).Seconds())
	case d < 100*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 100*time.Minute:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	}
	return fmt.Sprintf("%.0f d", d.Hours()/24)
}

// Authors returns the authors of a change, as "kubectl scale, kubelet/status": the manager, and
// behind a slash the subresource that it wrote, as RBAC names one. It is empty if there are none.
func Authors(e *event.Event) string {
	const most = 2
	var names []string
	for i, a := range e.Authors {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(e.Authors)-most))
			break
		}
		names = append(names, squeeze(clean(author(a)), widestValue))
	}
	return strings.Join(names, ", ")
}

// author names an author. The commands of kubectl are named as they are typed.
// Source: k8s.io/kubectl/pkg/cmd, the field managers of apply, scale and others.
func author(a event.Author) string {
	const kubectl = "kubectl"
	command, of := strings.CutPrefix(a.Manager, kubectl+"-")
	name := a.Manager
	switch {
	case command == "client-side-apply", a.Manager == kubectl && a.Operation == "Apply":
		name = kubectl + " apply"
	case of:
		name = kubectl + " " + command
	case a.Manager == kubectl && a.Subresource == "scale":
		return kubectl + " scale"
	}
	if a.Subresource != "" {
		name += "/" + a.Subresource
	}
	return name
}

// Sentence returns an event as a sentence, for a chat or a mail: "Deployment team-a/web updated:
// replicas 1 → 3 (by kubectl scale)". It is one line without control characters.
func Sentence(e *event.Event) string {
	s := clean(e.Kind.Kind) + " " + nameOf(e)
	if e.Verb != event.Settled {
		s += " " + clean(string(e.Verb))
	}
	if said := Words(e); said != "" {
		s += ": " + said
	}
	return s + notes(e)
}
