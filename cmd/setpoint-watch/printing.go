// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/internal/nearest"
	"github.com/setpoint-io/setpoint/watch/config"
	"github.com/setpoint-io/setpoint/watch/sink"
)

// forms are the values of --output.
var forms = []string{"text", "diff", "json", "yaml"}

// printing is how events are printed on standard output.
type printing struct {
	form        string
	cloudEvents bool
	objects     bool
	color       string
}

func (p *printing) flags(f *pflag.FlagSet) {
	f.StringVarP(&p.form, "output", "o", "text", "text: a line each; diff: field by field; json: a line each, for programs; yaml")
	f.BoolVar(&p.cloudEvents, "cloudevents", false, "print CloudEvents 1.0, a line of JSON each")
	f.BoolVar(&p.objects, "with-objects", false, "print the whole objects too, before and after, as json or yaml")
	f.StringVar(&p.color, "color", "auto", "auto: on a terminal, unless NO_COLOR is set; always; never")
}

// terminalName is the name of standard output in the journal if the file has no sinks.
const terminalName = "terminal"

// terminal describes the sink of standard output. given reports whether the command line has a flag.
func (p *printing) terminal(w *cli.World, given func(flag string) bool) (sink.Terminal, error) {
	t := sink.Terminal{Form: p.form, Objects: p.objects}
	switch {
	case !slices.Contains(forms, p.form):
		return t, fmt.Errorf("--output=%s: want %s%s", p.form, strings.Join(forms, ", "), nearest.Question("%s", p.form[:min(len(p.form), 100)], forms))
	case p.cloudEvents && given("output") && p.form != "json":
		return t, fmt.Errorf("--cloudevents: CloudEvents are JSON; leave out --output=%s", p.form)
	case p.cloudEvents:
		t.Form = "cloudevents"
	}
	if p.objects && (t.Form == "text" || t.Form == "diff") {
		return t, errors.New("--with-objects: want --output=json, --output=yaml or --cloudevents; a line or a diff has no place for whole objects")
	}
	switch p.color {
	case "auto":
		t.Color = colorful(w)
	case "always":
		t.Color = true
	case "never":
	default:
		return t, fmt.Errorf("--color=%s: want auto, always or never", p.color)
	}
	return t, nil
}

// colorful reports whether auto means colours: see https://no-color.org.
func colorful(w *cli.World) bool {
	return w.StdoutTerminal && w.Getenv("NO_COLOR") == "" && w.Getenv("TERM") != "dumb"
}

// sinks returns the sinks of the file, or standard output. Flags about printing concern the
// terminals among them.
func (p *printing) sinks(w *cli.World, c *config.Config, given func(flag string) bool) ([]config.Sink, error) {
	terminal, err := p.terminal(w, given)
	if err != nil {
		return nil, err
	}
	if c == nil || len(c.Sinks) == 0 {
		return []config.Sink{{Name: terminalName, Options: sink.Options{Terminal: &terminal}}}, nil
	}
	sinks := slices.Clone(c.Sinks)
	prints := false
	for i := range sinks {
		if sinks[i].Terminal == nil {
			continue
		}
		prints = true
		t := *sinks[i].Terminal
		if given("output") || given("cloudevents") {
			t.Form = terminal.Form
		}
		if given("with-objects") {
			t.Objects = terminal.Objects
		}
		if given("color") || !c.Set(fmt.Sprintf("sinks[%d].terminal.color", i)) {
			t.Color = terminal.Color
		}
		sinks[i].Terminal = &t
	}
	for _, flag := range []string{"output", "cloudevents", "with-objects", "color"} {
		if given(flag) && !prints {
			return nil, fmt.Errorf("--%s: nothing is printed, since %s has sinks and none of them is a terminal", flag, c.File())
		}
	}
	return sinks, nil
}
