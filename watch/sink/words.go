// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"fmt"
	"text/template"

	"github.com/setpoint-io/setpoint/watch/event"
)

// maxPaths is how many fields are named in a line.
const maxPaths = 3

// words says in a line what happened.
func words(e *event.Event) string {
	line := fmt.Sprintf("%s %s %s", e.Kind, e.Key, e.Verb)
	if e.Summary != "" {
		return line + ": " + e.Summary
	}
	for i, f := range e.Fields {
		switch {
		case i == 0:
			line += ": " + f.Path
		case i < maxPaths:
			line += ", " + f.Path
		default:
			return fmt.Sprintf("%s and %d more", line, len(e.Fields)-maxPaths)
		}
	}
	return line
}

// templateFuncs are what templates can call beside the functions of text/template.
var templateFuncs = template.FuncMap{"words": words}
