// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/where"
)

// Router says where events go. It is safe for concurrent use.
type Router struct {
	all    []string // without routes
	routes []route
}

// route is a Route, ready for events. Its fields are tried in this order, the cheapest first.
type route struct {
	path    string
	verbs   map[event.Verb]bool // nil: every
	classes []event.Class       // empty: every
	kinds   *kindMatch          // nil: every
	in      *patterns           // nil: every
	out     *patterns           // nil: none
	labels  labels.Selector
	where   *where.Condition
	sinks   []string
	goesOn  bool
}

func newRouter(c *Config) *Router {
	if len(c.Routes) == 0 {
		return &Router{all: c.sinkNames()}
	}
	r := &Router{}
	for i, from := range c.Routes {
		m := from.Match
		to := route{path: index("routes", i), where: from.where, sinks: unique(from.Sinks), goesOn: from.Continue}
		for _, verb := range m.Verbs {
			if to.verbs == nil {
				to.verbs = map[event.Verb]bool{}
			}
			to.verbs[event.Verb(verb)] = true
		}
		for _, name := range m.Classes {
			to.classes = append(to.classes, event.Class(name))
		}
		to.kinds = newKindMatch(m.Kinds)
		to.in, to.out = patternsOf(m.Namespaces), patternsOf(m.ExcludeNamespaces)
		if m.Labels != "" {
			to.labels, _ = labels.Parse(m.Labels) // Parse has checked it
		}
		r.routes = append(r.routes, to)
	}
	return r
}

// Route returns the names of the sinks that an event goes to, each once. The caller must not
// change them.
//
// The error wraps an error of package where for each condition that cannot be decided for this
// event, most often because the object does not have a field of the condition. Such a route does
// not match; the sinks are those of the other routes.
func (r *Router) Route(e *event.Event) ([]string, error) {
	sinks, several := r.all, false
	var errs []error
	for i := range r.routes {
		route := &r.routes[i]
		matches, err := route.match(e)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", route.path, err))
		}
		if !matches {
			continue
		}
		if sinks == nil { // most often one route matches, and nothing is copied
			sinks = route.sinks
		} else {
			if !several {
				sinks, several = slices.Clone(sinks), true
			}
			for _, name := range route.sinks {
				if !slices.Contains(sinks, name) {
					sinks = append(sinks, name)
				}
			}
		}
		if !route.goesOn {
			break
		}
	}
	return sinks, errors.Join(errs...)
}

func (r *route) match(e *event.Event) (bool, error) {
	if r.verbs != nil && !r.verbs[e.Verb] ||
		r.kinds != nil && !r.kinds.match(e) ||
		r.in != nil && (e.Key.Namespace == "" || !r.in.match(e.Key.Namespace)) ||
		r.out != nil && e.Key.Namespace != "" && r.out.match(e.Key.Namespace) ||
		len(r.classes) > 0 && !slices.ContainsFunc(r.classes, e.Is) ||
		r.labels != nil && !labelled(r.labels, e.New) && !labelled(r.labels, e.Old) {
		return false, nil
	}
	if r.where == nil {
		return true, nil
	}
	return r.where.Matches(e)
}

// labelled reports whether a state of an object meets a selector. A missing state meets none.
func labelled(selector labels.Selector, object map[string]any) bool {
	if object == nil {
		return false
	}
	metadata, _ := object["metadata"].(map[string]any)
	have, _ := metadata["labels"].(map[string]any)
	return selector.Matches(tags(have))
}

// tags are the labels of a decoded object, as a selector reads them.
type tags map[string]any

// Has implements labels.Labels.
func (t tags) Has(label string) bool {
	_, has := t[label]
	return has
}

// Get implements labels.Labels.
func (t tags) Get(label string) string {
	value, _ := t[label].(string)
	return value
}

// Lookup implements labels.Labels.
func (t tags) Lookup(label string) (string, bool) {
	value, has := t[label]
	text, _ := value.(string)
	return text, has
}

func patternsOf(names []string) *patterns {
	if len(names) == 0 {
		return nil
	}
	p := newPatterns(names)
	return &p
}

// unique returns the names, each once. It is never nil.
func unique(names []string) []string {
	once := make([]string, 0, len(names))
	for _, name := range names {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	return once
}
