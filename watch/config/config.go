// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/observe"
	"github.com/setpoint-io/setpoint/watch/sink"
	"github.com/setpoint-io/setpoint/watch/where"
)

// Version is the apiVersion of the files that Parse reads.
const Version = "setpoint.io/watch/v1"

// Config is what a file says. Parse makes it, and callers must not change it. It is safe for
// concurrent use.
type Config struct {
	// APIVersion is Version.
	APIVersion string `yaml:"apiVersion"`
	// Watch says what is watched, and which changes become events.
	Watch Watch `yaml:"watch,omitempty"`
	// Hide has further values that are never shown: "configmaps:data.password".
	Hide []string `yaml:"hide,omitempty"`
	// Cursor is the file of the journal: what was seen, and events that wait. Empty for none.
	Cursor string `yaml:"cursor,omitempty"`
	// CursorStates keeps the last state of each object in the cursor, too.
	CursorStates bool `yaml:"cursorStates,omitempty"`
	// Listen is where health and metrics are served, host:port; empty for nowhere.
	Listen string `yaml:"listen,omitempty"`
	// Lease is the Lease that replicas elect a leader with, namespace/name; empty for none.
	Lease string `yaml:"lease,omitempty"`
	// Sinks are where events go.
	Sinks []Sink `yaml:"sinks,omitempty"`
	// Routes say which events go to which sinks. Without any, all events go to all sinks.
	Routes []Route `yaml:"routes,omitempty"`

	file     string
	text     []byte // as it was parsed
	set      map[string]bool
	where    *where.Condition
	hide     []observe.Rule
	router   *Router
	warnings []*Finding
	reads    []need
}

// Watch is what is watched. The keys have the names and the meaning of the flags of the command
// line.
type Watch struct {
	// All watches every kind that can be watched, also kinds that are defined later.
	All bool `yaml:"all,omitempty"`
	// Kinds are the kinds, as plural and group: pods, deployments.apps. With a name behind a slash
	// only that object is watched: deployments.apps/web.
	Kinds []string `yaml:"kinds,omitempty"`
	// Namespaces are the only ones that are watched; empty for all.
	Namespaces []string `yaml:"namespaces,omitempty"`
	// ExcludeNamespaces are left out.
	ExcludeNamespaces []string `yaml:"excludeNamespaces,omitempty"`
	// Labels and Fields are selectors as kubectl takes them with -l and --field-selector.
	Labels string `yaml:"labels,omitempty"`
	Fields string `yaml:"fields,omitempty"`
	// Show has the classes of changes that are shown beside content, metadata and trouble.
	Show []string `yaml:"show,omitempty"`
	// Window is how long changes of one object are gathered into one event.
	Window time.Duration `yaml:"window,omitempty"`
	// Settle is how long an object must be at rest before an event says how it settled.
	Settle time.Duration `yaml:"settle,omitempty"`
	// Where is a condition in CEL that events must meet.
	Where string `yaml:"where,omitempty"`
	// Initial says whether the objects that are there at the start are events.
	Initial bool `yaml:"initial,omitempty"`
}

// Sink is one place where events go.
type Sink struct {
	// Name is its name in routes, metrics and the journal: lower case letters, digits and
	// dashes.
	Name string `yaml:"name"`
	// Options say which sort of sink it is, and have its options.
	sink.Options `yaml:",inline"`
}

// Route takes the events that it matches to sinks.
type Route struct {
	// Name is for people; it may be empty.
	Name string `yaml:"name,omitempty"`
	// Match says which events. An empty Match matches all.
	Match Match `yaml:"match,omitempty"`
	// Sinks are the names of the sinks. Without any, the events are dropped here.
	Sinks []string `yaml:"sinks"`
	// Continue says that the routes below are tried too. Without it the first route that
	// matches an event is its last.
	Continue bool `yaml:"continue,omitempty"`

	where *where.Condition
}

// Match selects events. An event must meet every field that is not empty; it meets a list if it
// meets one of its elements.
type Match struct {
	// Kinds are kinds and objects as in Watch. A * stands for any characters of a kind or of a
	// name: pods/web-*.
	Kinds []string `yaml:"kinds,omitempty"`
	// Namespaces are those of the objects. A * stands for any characters. An object without
	// a namespace is in none of them.
	Namespaces []string `yaml:"namespaces,omitempty"`
	// ExcludeNamespaces are namespaces that the objects must not be in. A * stands for any
	// characters. An object without a namespace is in none of them.
	ExcludeNamespaces []string `yaml:"excludeNamespaces,omitempty"`
	// Verbs say what happened: created, updated, deleted, replaced, existing, settled, failing,
	// resolved.
	Verbs []string `yaml:"verbs,omitempty"`
	// Classes are classes of changes: those of Watch.Show, and content and metadata.
	Classes []string `yaml:"classes,omitempty"`
	// Labels is a selector. The object must meet it before or after the change.
	Labels string `yaml:"labels,omitempty"`
	// Where is a condition in CEL. It is tried last.
	Where string `yaml:"where,omitempty"`
}

// File returns the name that Parse was given.
func (c *Config) File() string { return c.file }

// Set reports whether the file has a key, such as "watch.window". A flag of the command line may
// have another default than zero.
func (c *Config) Set(key string) bool { return c.set[key] }

// Where returns the condition of Watch.Where, or nil if there is none.
func (c *Config) Where() *where.Condition { return c.where }

// Hidden returns the rules of Hide.
func (c *Config) Hidden() []observe.Rule { return c.hide }

// Router returns the routes, ready for events.
func (c *Config) Router() *Router { return c.router }

// Warnings returns what is allowed and probably not meant, in the order of the file.
func (c *Config) Warnings() []*Finding { return c.warnings }

// Shown returns the classes of Watch.Show, with content and metadata, which are always shown.
func (w Watch) Shown() []event.Class {
	shown := []event.Class{event.Content, event.Metadata}
	for _, name := range w.Show {
		if class := event.Class(name); class != event.Content && class != event.Metadata {
			shown = append(shown, class)
		}
	}
	return shown
}

// words returns names as texts.
func words[T ~string](names []T) []string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = string(name)
	}
	return texts
}
