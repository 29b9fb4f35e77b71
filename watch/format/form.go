// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/internal/nearest"
)

// Form is how events are written.
type Form string

// The forms.
const (
	Text        Form = "text"
	Diff        Form = "diff"
	JSON        Form = "json"
	YAML        Form = "yaml"
	CloudEvents Form = "cloudevents"
)

// Forms returns all forms.
func Forms() []Form { return []Form{Text, Diff, JSON, YAML, CloudEvents} }

// ParseForm returns the form of a name. The error names the nearest one, and all.
func ParseForm(name string) (Form, error) {
	if slices.Contains(Forms(), Form(name)) {
		return Form(name), nil
	}
	var names []string
	for _, f := range Forms() {
		names = append(names, string(f))
	}
	return "", fmt.Errorf("there is no form %q%s There are %s",
		name, cmp.Or(nearest.Question("%q", strings.ToLower(name), names), "."), strings.Join(names, ", "))
}
