// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"fmt"
	"text/template"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/format"
)

// templateFuncs are what templates can call beside the functions of text/template:
//
//   - words says in a line what happened, escaped for the service;
//   - escape escapes any value for the service, such as {{escape .Key}}.
func templateFuncs(escape escaper) template.FuncMap {
	return template.FuncMap{
		"words":  func(e *event.Event) string { return escape(format.Sentence(e)) },
		"escape": func(v any) string { return escape(fmt.Sprint(v)) },
	}
}
