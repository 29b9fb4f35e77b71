// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/watch/event"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// diff writes an event field by field.
func (w *Writer) diff(e *event.Event) {
	fmt.Fprintf(&w.buffer, "%s %s %s %s%s\n", w.paint(dim, e.Time.In(w.options.Zone).Format(clock)),
		w.paint(colourOf(e.Verb), clean(string(e.Verb))), kindOf(e), nameOf(e), w.paint(dim, notes(e)))
	whole := w.options.WithObjects && len(e.Fields) == 0
	switch {
	case whole && e.Old == nil && e.New != nil:
		w.below(green, "+ ", e.New)
	case whole && e.New == nil && e.Old != nil:
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

// line writes a line that belongs to an event.
func (w *Writer) line(c colour, text string) {
	w.buffer.WriteString("  " + w.paint(c, strings.TrimRight(text, " ")) + "\n")
}

func (w *Writer) field(f event.Field) {
	path := clean(f.Path)
	mark, c := "~ ", yellow
	switch f.Op {
	case event.Add:
		mark, c = "+ ", green
	case event.Remove:
		mark, c = "- ", red
	case event.Replace:
	}
	switch {
	case f.Hidden:
		w.line(c, mark+path+": (not shown)")
	case f.Op == event.Add && single(f.To):
		w.line(c, mark+path+": "+whole(f.To))
	case f.Op == event.Remove && single(f.From):
		w.line(c, mark+path+": "+whole(f.From))
	case f.Op == event.Add:
		w.line(c, mark+path+":")
		w.below(c, "    ", f.To)
	case f.Op == event.Remove:
		w.line(c, mark+path+":")
		w.below(c, "    ", f.From)
	case single(f.From) && single(f.To):
		w.line(c, mark+path+": "+whole(f.From)+" → "+whole(f.To))
	default:
		w.line(c, mark+path+":")
		for _, l := range unified(block(f.From), block(f.To)) {
			w.line(colourOfLine(l), "    "+cleanLine(l))
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
	marshal := yaml.Marshal
	if deeper(v, deepestBlock) {
		marshal = marshalDeep
	}
	b, err := marshal(v)
	if err != nil {
		return whole(fmt.Sprint(v)) + "\n"
	}
	return string(b)
}

// marshalDeep is for values that are so deep that they cannot all be lines, see restyle.
func marshalDeep(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return document(b)
}

// deeper reports whether a value has more than so many levels.
func deeper(v any, levels int) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, below := range v {
			if levels == 0 || deeper(below, levels-1) {
				return true
			}
		}
	case []any:
		for _, below := range v {
			if levels == 0 || deeper(below, levels-1) {
				return true
			}
		}
	}
	return false
}

// cleanLine is clean for lines of a text, in which tabs are layout.
func cleanLine(s string) string {
	parts := strings.Split(s, "\t")
	for i := range parts {
		parts[i] = clean(parts[i])
	}
	return strings.Join(parts, "\t")
}

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
