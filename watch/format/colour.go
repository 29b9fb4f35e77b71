// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import "github.com/setpoint-io/setpoint/watch/event"

// colour is a colour of a terminal, as Select Graphic Rendition numbers them (ECMA-48).
type colour string

const (
	plain   colour = ""
	dim     colour = "2"
	red     colour = "31"
	green   colour = "32"
	yellow  colour = "33"
	magenta colour = "35"
	cyan    colour = "36"
)

// paint returns a text in a colour, if the options ask for colours.
func (w *Writer) paint(c colour, s string) string {
	if !w.options.Color || c == plain || s == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

var verbColours = map[event.Verb]colour{
	event.Created: green, event.Updated: yellow, event.Deleted: red, event.Replaced: magenta, event.Settled: cyan, event.Existing: dim,
	event.Failing: red, event.Resolved: green,
}
