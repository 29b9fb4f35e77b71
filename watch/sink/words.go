// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"fmt"
	"text/template"

	"github.com/setpoint-io/setpoint/watch/event"
)

// words says in a line what happened.
func words(e *event.Event) string { return fmt.Sprintf("%s %s %s", e.Kind, e.Key, e.Verb) }

// templateFuncs are what templates can call beside the functions of text/template.
var templateFuncs = template.FuncMap{"words": words}
