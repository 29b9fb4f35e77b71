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
	"github.com/setpoint-io/setpoint/watch/sink"
)

// Options says what is watched and which changes are published. The zero value publishes every
// change of a Pod that is more than a sign of life.
type Options struct {
	// Kinds are the kinds that are watched, each as on a command line: "pods", "po", "Pod",
	// "deployments.apps", "deployments.v1.apps". With a name behind a slash only that object is
	// watched: "deploy/web", once for each namespace. The default is pods.
	Kinds []string
	// All is every kind that can be watched. Kinds must be empty then.
	All bool
	// Namespaces are the namespaces that are watched; none is all. A namespace that does not
	// exist is logged and waited for. Kinds without namespaces are watched in any case, except
	// those that this account may not read if All is set.
	Namespaces []string
	// ExcludeNamespaces are left out.
	ExcludeNamespaces []string
	// Labels and Fields are selectors, which the server applies.
	Labels, Fields string

	// Show are the classes that are published beside content, metadata and trouble.
	Show []event.Class
	// Existing publishes the objects that are there at the start, too.
	Existing bool
	// Keep says whether an event is published. It may be nil. An error is counted and
	// logged, and the event is not published.
	Keep func(*event.Event) (bool, error)
	// Window is how long changes of an object are merged into one. 0 publishes each.
	Window time.Duration
	// Settle is how long an object must be at rest until one event sums up its changes. 0
	// publishes each change.
	Settle time.Duration
	// Hide are rules for values that no event shows, beside those of Secrets.
	Hide []observe.Rule

	// Journal keeps over a restart what was published and what sinks have not taken. Without
	// one, Tell gets the events.
	Journal *journal.Journal
	// Route says to which sinks of the journal an event goes.
	Route func(*event.Event) ([]string, error)
	// WithObjects has whole objects written to the journal, for sinks that send them.
	WithObjects bool
	// Words describes an object that was created or deleted in a few words. They become the
	// summary of an event that the journal keeps without the object. May be nil.
	Words func(*event.Event) string
	// Tell is called with events, in order, if there is no journal. The watch waits for it: its context ends five
	// seconds after the watch has been asked to end.
	Tell func(context.Context, []*event.Event) error
	// Because sets the Cause of the events of a batch before they are published. The watch waits for it, so it must be
	// quick. May be nil. See package because.
	Because func(context.Context, []*event.Event)
	// Once ends Run when everything that had changed is published. A kind that may not be read is
	// an error then, and so are a server and a sink that fail for 30 s.
	Once bool

	Log *slog.Logger // nil: slog.Default

	recent *sink.Recent // of the events that were put into the journal; nil: they are not kept
}

// The time between two discoveries, if the watch waits for a kind and if it does not. A kind that
// is defined meanwhile is noticed by the definitions, and looked for after discoverSoon.
const (
	discoverSoon   = 100 * time.Millisecond
	discoverEvery  = 10 * time.Second
	discoverSeldom = time.Minute
)

// listQuiet is how long a first list may take before the log says that the watch waits for it.
// Source: k8s.io/client-go/tools/cache, initialEventsEndBookmarkWarningTicker.
const listQuiet = 10 * time.Second

// oncePatience is how long a Watch with Once waits for a server or a sink.
const oncePatience = 30 * time.Second

func (o *Options) complete() error {
	var errs []error
	if o.All && len(o.Kinds) > 0 {
		errs = append(errs, errors.New("there are kinds, and all kinds; name kinds, or all"))
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
		errs = append(errs, errors.New("want a journal or Tell, and not both"))
	}
	if o.Journal != nil && o.Route == nil {
		errs = append(errs, errors.New("a journal needs routes to its sinks"))
	}
	if o.Once && o.Journal == nil {
		errs = append(errs, errors.New("to tell once what has changed, there must be a journal that says since when"))
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return errors.Join(errs...)
}
