// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/watch/format"
)

// Terminal describes a sink that prints.
type Terminal struct {
	// Form is text, diff, json, yaml or cloudevents. Default: text.
	Form string `yaml:"form,omitempty"`
	// Color says whether to print in colour. Default: no.
	Color bool `yaml:"color,omitempty"`
	// Objects says whether whole objects are printed in the forms that can.
	Objects bool `yaml:"objects,omitempty"`
	// Source is the source of CloudEvents: a URI, or the name of the cluster.
	Source string `yaml:"source,omitempty"`
}

func (t *Terminal) check(report reporter) { checkForm(report, t.Form) }

func (t *Terminal) reads() []Read { return nil }

func (t *Terminal) batch() int { return 100 }

func (t *Terminal) sink(d Deps) (Sink, error) {
	if d.Stdout == nil {
		return nil, errors.New("there is no terminal here to write to")
	}
	form, err := format.ParseForm(cmp.Or(t.Form, "text"))
	if err != nil {
		return nil, within("form", err)
	}
	return terminal{newPrinter(d.Stdout, 0, format.Options{
		Form: form, Color: t.Color, WithObjects: t.Objects, Source: t.Source, Zone: d.Zone, Width: d.Width,
	})}, nil
}

// Forms returns the forms that files and terminals are written in.
func Forms() []string { return []string{"text", "diff", "json", "yaml", "cloudevents"} }

func checkForm(report reporter, form string) {
	if form != "" && !slices.Contains(Forms(), form) {
		report.wrong("form", "%q is none of %s", form, strings.Join(Forms(), ", "))
	}
}

// terminal is a printer on a writer of the program.
type terminal struct{ *printer }

// Close leaves the writer open.
func (terminal) Close() error { return nil }
