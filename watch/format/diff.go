// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/setpoint-io/setpoint/watch/event"
)

// diff writes an event field by field.
func (w *Writer) diff(e *event.Event) {
	fmt.Fprintf(&w.buffer, "%s %s %s %s%s\n", w.paint(dim, e.Time.In(w.options.Zone).Format(clock)),
		w.paint(verbColours[e.Verb], clean(string(e.Verb))), kindOf(e), nameOf(e), w.paint(dim, notes(e)))
	inFull := w.options.WithObjects && len(e.Fields) == 0
	switch {
	case inFull && e.Old == nil && e.New != nil:
		w.below(green, "+ ", e.New)
	case inFull && e.New == nil && e.Old != nil:
		w.below(red, "- ", e.Old)
	case len(e.Fields) == 0 || e.Summary != "":
		if said := Words(e); said != "" {
			w.line(plain, said)
		}
	}
	for _, f := range e.Fields {
		w.field(f)
	}
}

// line writes a line that belongs to an event, without the blanks at its end.
func (w *Writer) line(c colour, text string) { w.exact(c, strings.TrimRight(text, " ")) }

// exact writes a line as it is. Of two lines, the blanks at the end may be all that differs.
func (w *Writer) exact(c colour, text string) { w.buffer.WriteString("  " + w.paint(c, text) + "\n") }

func (w *Writer) field(f event.Field) {
	path := clean(f.Path)
	if f.Op != event.Replace {
		mark, c := "+ ", green
		if f.Op == event.Remove {
			mark, c = "- ", red
		}
		switch v := present(f); {
		case f.Hidden:
			w.line(c, mark+path+": (not shown)")
		case single(v):
			w.line(c, mark+path+": "+whole(v))
		default:
			w.line(c, mark+path+":")
			w.below(c, "    ", v)
		}
		return
	}
	switch {
	case f.Hidden:
		w.line(yellow, "~ "+path+": (not shown)")
	case single(f.From) && single(f.To):
		w.line(yellow, "~ "+path+": "+whole(f.From)+" → "+whole(f.To))
	default:
		w.line(yellow, "~ "+path+":")
		for _, l := range unified(block(f.From), block(f.To)) {
			if c := colourOfLine(l); c == plain {
				w.line(c, "    "+cleanLine(l))
			} else {
				w.exact(c, "    "+cleanLine(l))
			}
		}
	}
}

// below writes a value of several lines.
func (w *Writer) below(c colour, indent string, v any) {
	for l := range strings.Lines(block(v)) {
		w.line(c, indent+cleanLine(strings.TrimSuffix(l, "\n")))
	}
}

// whole returns a value that is on one line, not shortened.
func whole(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return "{}"
	case []any:
		return "[]"
	case string:
		return value(v, len(v)*4+2) // each byte takes four columns at most, as \x1b
	}
	return value(v, 1<<20)
}

// block returns a value as lines: a text as it is, others as YAML.
func block(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err == nil {
		b, err = document(b, true)
	}
	if err != nil {
		return whole(fmt.Sprint(v)) + "\n"
	}
	return string(b)
}

// cleanLine is clean for lines of a text, in which tabs are layout.
func cleanLine(s string) string { return escape(s, "\t", written) }

func colourOfLine(l string) colour {
	switch {
	case strings.HasPrefix(l, "@@"):
		return cyan
	case strings.HasPrefix(l, "+"):
		return green
	case strings.HasPrefix(l, "-"):
		return red
	}
	return plain
}
