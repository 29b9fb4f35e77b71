// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/watch/sink"
)

// Report is what a configuration means, in words. No secret is in it.
type Report struct {
	// Watches are sentences on what is watched, and which changes are events.
	Watches []string
	// Sinks are the sinks, in the order of the file.
	Sinks []SinkReport
	// Unmatched says what becomes of events that no route matches.
	Unmatched string
	// Warnings are those of the configuration, in the order of the file.
	Warnings []*Finding
	// Errors are secrets and certificates that cannot be read here: *Finding each, in the
	// order of the file.
	Errors []error
}

// SinkReport is one sink.
type SinkReport struct {
	Name string
	// Sort is sink.Options.Sort, Target the address of the sink without its secrets.
	Sort, Target string
	// Routes say which events the sink gets. It gets none if they are empty.
	Routes []string
}

// Check says what a configuration means, and tries to read the secrets and certificates that it
// names. readFile has the signature of os.ReadFile, lookupEnv that of os.LookupEnv; Check drops
// the contents. Without one of the functions, Check does not try what it reads.
func Check(c *Config, readFile func(name string) ([]byte, error), lookupEnv func(name string) (string, bool)) Report {
	r := Report{Watches: c.watches(), Unmatched: c.unmatched(), Warnings: slices.Clone(c.warnings)}
	for _, s := range c.Sinks {
		r.Sinks = append(r.Sinks, SinkReport{Name: s.Name, Sort: s.Sort(), Target: target(s.Options), Routes: c.routesTo(s.Name)})
	}
	for _, need := range c.reads {
		if err := need.read(readFile, lookupEnv); err != nil {
			found := *need.at
			found.Text += ": " + err.Error()
			r.Errors = append(r.Errors, &found)
		}
	}
	return r
}

// Lines returns the report as text, line by line, errors first.
func (r Report) Lines() []string {
	var lines []string
	for _, err := range r.Errors {
		lines = append(lines, "error: "+err.Error())
	}
	for _, warning := range r.Warnings {
		lines = append(lines, "warning: "+warning.Error())
	}
	lines = append(lines, r.Watches...)
	for _, s := range r.Sinks {
		line := fmt.Sprintf("sink %s (%s", s.Name, s.Sort)
		if s.Target != "" {
			line += ": " + s.Target
		}
		line += ") gets "
		switch len(s.Routes) {
		case 0:
			lines = append(lines, line+"nothing")
		case 1:
			lines = append(lines, line+s.Routes[0])
		default:
			lines = append(lines, line+"what any of these matches:")
			for _, route := range s.Routes {
				lines = append(lines, "  "+route)
			}
		}
	}
	if r.Unmatched != "" {
		lines = append(lines, r.Unmatched)
	}
	return lines
}

func (c *Config) watches() []string {
	w := c.Watch
	what := "pods, since no kinds are named"
	switch {
	case w.All:
		what = "every kind that can be watched, those that come later too"
	case len(w.Kinds) > 0:
		what = strings.Join(unique(w.Kinds), ", ")
	}
	where := "in all namespaces"
	if len(w.Namespaces) > 0 {
		where = "in the namespaces " + strings.Join(unique(w.Namespaces), ", ") + " (kinds without namespaces as a whole)"
	}
	if len(w.ExcludeNamespaces) > 0 {
		where += " but " + strings.Join(unique(w.ExcludeNamespaces), ", ")
	}
	watched := "watches " + what + ", " + where
	if w.Labels != "" {
		watched += ", with labels " + w.Labels
	}
	if w.Fields != "" {
		watched += ", with fields " + w.Fields
	}
	var shown []string
	for _, class := range w.Shown() {
		shown = append(shown, string(class))
	}
	told := "tells of creations, deletions, trouble, and changes of " + strings.Join(shown, ", ")
	if w.Where != "" {
		told += ", where " + oneLine(w.Where)
	}
	if w.Initial {
		told += "; at the start of what is there"
	}
	lines := []string{watched, told}
	if w.Window > 0 {
		lines = append(lines, fmt.Sprintf("gathers changes of an object for %s to one", w.Window))
	}
	if w.Settle > 0 {
		lines = append(lines, fmt.Sprintf("tells how an object settled when it is at rest for %s", w.Settle))
	}
	if len(c.Hide) > 0 {
		lines = append(lines, "shows no values of secrets, nor of "+strings.Join(c.Hide, ", "))
	}
	if c.Cursor != "" {
		lines = append(lines, "keeps what it has seen and what is still to be sent in "+c.Cursor)
		if c.CursorStates {
			lines = append(lines, "keeps the last state of each object there too, without hidden values")
		}
	} else {
		lines = append(lines, "has no cursor: what happens while it is not running is not told")
	}
	return lines
}

func (c *Config) unmatched() string {
	switch {
	case len(c.Sinks) == 0, len(c.Routes) == 0:
		return ""
	case slices.ContainsFunc(c.Routes, func(r Route) bool { return r.Match.empty() }):
		return ""
	}
	return "an event that no route matches goes to no sink"
}

// routesTo returns what the routes to a sink match, in words.
func (c *Config) routesTo(name string) []string {
	if len(c.Routes) == 0 {
		return []string{"everything"}
	}
	var to []string
	for i := range c.Routes {
		if slices.Contains(c.Routes[i].Sinks, name) {
			to = append(to, c.routeInWords(i))
		}
	}
	return to
}

func (c *Config) routeInWords(i int) string {
	route := c.Routes[i]
	words := route.Match.words()
	if slices.ContainsFunc(c.Routes[:i], func(before Route) bool { return !before.Continue }) {
		words += ", of what no route above keeps"
	}
	called := index("routes", i)
	if route.Name != "" {
		called += " " + route.Name
	}
	return words + " (" + called + ")"
}

// words say what a Match matches.
func (m Match) words() string {
	if m.empty() {
		return "everything"
	}
	var parts []string
	for _, part := range []struct {
		before string
		names  []string
	}{
		{"of ", m.Kinds}, {"in ", m.Namespaces}, {"not in ", m.ExcludeNamespaces}, {"", m.Verbs}, {"changes of ", m.Classes},
	} {
		if len(part.names) > 0 {
			parts = append(parts, part.before+strings.Join(part.names, " or "))
		}
	}
	if m.Labels != "" {
		parts = append(parts, "with labels "+m.Labels)
	}
	if m.Where != "" {
		parts = append(parts, "where "+oneLine(m.Where))
	}
	return "events " + strings.Join(parts, ", ")
}

// target returns the address of a sink. Of a URL it is the host, since the rest is a secret.
func target(o sink.Options) string {
	switch {
	case o.File != nil:
		return o.File.Path
	case o.Webhook != nil:
		if o.Webhook.URL.IsZero() {
			return "the URL in the " + o.Webhook.URLFrom.String()
		}
		return hostOf(o.Webhook.URL)
	case o.Mail != nil:
		return strings.Join(o.Mail.To, ", ")
	default:
		return ""
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
