// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/journal"
	"github.com/setpoint-io/setpoint/watch/observe"
)

// Options says what is watched and what is told of it. The zero value tells of every
// change of a Pod that is more than a sign of life.
type Options struct {
	// Kinds are what is watched, each as on a command line: "pods", "po", "Pod",
	// "deployments.apps", "deployments.v1.apps". None is pods.
	Kinds []string
	// All is every kind that can be watched. Kinds must be empty then.
	All bool
	// Namespaces are those watched; none is all of them. Kinds without namespaces are
	// watched whatever is here.
	Namespaces []string
	// ExcludeNamespaces are left out.
	ExcludeNamespaces []string
	// Labels and Fields are selectors, which the server applies.
	Labels, Fields string

	// Show are the classes told of beyond content and metadata.
	Show []event.Class
	// Existing has the objects told of that are there at the start.
	Existing bool
	// Keep says of an event whether it is told of. It may be nil. An error is counted and
	// logged, and the event is not told of.
	Keep func(*event.Event) (bool, error)
	// Window is how long changes of an object are gathered to one. 0 tells of each.
	Window time.Duration
	// Settle is how long an object must be at rest until one event sums up what became
	// of it. 0 tells of each change.
	Settle time.Duration
	// Hide are values that are never shown, beside those of Secrets.
	Hide []observe.Rule

	// Journal keeps over a restart what was told and what is still to be sent. Without one
	// Tell is used.
	Journal *journal.Journal
	// Route says to which sinks of the journal an event goes.
	Route func(*event.Event) ([]string, error)
	// WithObjects has whole objects written to the journal, for sinks that send them.
	WithObjects bool
	// Words says in a few words what an object that came or went is or was like. It is
	// asked where an event is written to the journal without the object, and what it says
	// is the summary then. May be nil.
	Words func(*event.Event) string
	// Tell is told of events, in order, where there is no journal. It blocks as long as it
	// needs to.
	Tell func(context.Context, []*event.Event) error
	// Once ends Run when everything that had changed has been told. A kind that may not be
	// read is an error then, and so is what cannot be read, or not be told, for 30 s.
	Once bool

	Log *slog.Logger // nil: none
}

// How often the server is asked which kinds there are, where one is waited for and where
// not.
const (
	discoverEvery  = 10 * time.Second
	discoverSeldom = time.Minute
)

// discoverPatience is how long one discovery may take. client-go allows 32 s.
// Source: k8s.io/client-go/discovery, defaultTimeout.
const discoverPatience = 32 * time.Second

// listQuiet is how long a first list may take before the log says that it is waited for.
// Source: k8s.io/client-go/tools/cache, initialEventsEndBookmarkWarningTicker.
const listQuiet = 10 * time.Second

// oncePatience is how long who asks once waits for a server or a sink.
const oncePatience = 30 * time.Second

func (o *Options) complete() error {
	var errs []error
	if o.All && len(o.Kinds) > 0 {
		errs = append(errs, errors.New("all kinds and some kinds are asked for; name kinds, or all"))
	}
	if !o.All && len(o.Kinds) == 0 {
		o.Kinds = []string{"pods"}
	}
	if _, err := labels.Parse(o.Labels); err != nil {
		errs = append(errs, fmt.Errorf("labels %q: %w", o.Labels, err))
	}
	if _, err := fields.ParseSelector(o.Fields); err != nil {
		errs = append(errs, fmt.Errorf("fields %q: %w", o.Fields, err))
	}
	if o.Window < 0 || o.Settle < 0 {
		errs = append(errs, fmt.Errorf("a window of %s and a settle time of %s; give 0 for none, or more", o.Window, o.Settle))
	}
	for _, c := range o.Show {
		if !slices.Contains(event.Classes(), c) {
			errs = append(errs, fmt.Errorf("there is no class %q; the classes are %v", c, event.Classes()))
		}
	}
	if (o.Journal == nil) == (o.Tell == nil) {
		errs = append(errs, errors.New("want a journal, or somebody to tell; not both and not none"))
	}
	if o.Journal != nil && o.Route == nil {
		errs = append(errs, errors.New("a journal needs routes to its sinks"))
	}
	if o.Once && o.Journal == nil {
		errs = append(errs, errors.New("to tell once what has changed, there must be a journal that says since when"))
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return errors.Join(errs...)
}
