// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"text/template"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/format"
)

// words says in a line what happened.
func words(e *event.Event) string { return format.Sentence(e) }

// templateFuncs are what templates can call beside the functions of text/template.
var templateFuncs = template.FuncMap{"words": words}
