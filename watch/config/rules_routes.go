// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"

	"github.com/setpoint-io/setpoint/watch/event"
)

// mostEntries is how many sinks and how many routes a file may have. Every event tries every
// route, and each sink has a queue of its own.
const mostEntries = 1000

func (r *rules) routes() {
	routes, names := r.config.Routes, r.config.sinkNames()
	for list, have := range map[string]int{"sinks": len(names), "routes": len(routes)} {
		if have > mostEntries {
			r.wrong(list, "there are %d, and no more than %d are taken", have, mostEntries)
			return
		}
	}
	end := -1 // the first route that takes everything
	used := map[string]bool{}
	for i := range routes {
		route, path := &routes[i], index("routes", i)
		r.match(join(path, "match"), &route.Match)
		route.where = r.condition(join(path, "match.where"), route.Match.Where)
		r.leads(path, route, names)
		for _, name := range route.Sinks {
			used[name] = true
		}
		if end >= 0 {
			r.warn(path, "no event comes here: the route in line %d takes them all, and does not continue", r.nodes[index("routes", end)].Line)
		} else if route.Match.empty() && !route.Continue {
			end = i
		}
	}
	if len(routes) == 0 {
		return
	}
	for i, name := range names {
		if !used[name] && name != "" {
			r.warn(join(index("sinks", i), "name"), "no route leads to %q; it is sent nothing", clip(name))
		}
	}
}

func (m *Match) empty() bool {
	return len(m.Kinds) == 0 && len(m.Namespaces) == 0 && len(m.ExcludeNamespaces) == 0 &&
		len(m.Verbs) == 0 && len(m.Classes) == 0 && m.Labels == "" && m.Where == ""
}

// leads checks the sinks of a route.
func (r *rules) leads(path string, route *Route, names []string) {
	at := join(path, "sinks")
	switch {
	case r.nodes[at] == nil && !r.spoilt(at):
		r.wrong(path, "a route leads to sinks; name them, as in \"sinks: [%s]\", or write \"sinks: []\" to drop what it matches", exampleSink(names))
		return
	case len(route.Sinks) == 0 && route.Continue:
		r.wrong(join(path, "continue"), "a route without sinks that continues does nothing; take continue out, and what it matches ends here")
	}
	r.twice(at, route.Sinks)
	for i, name := range route.Sinks {
		switch {
		case slices.Contains(names, name):
		case len(names) == 0:
			r.wrong(index(at, i), "there is no sink %q, nor any other; write it under sinks", clip(name))
		default:
			r.wrong(index(at, i), "there is no sink %q%s", clip(name), r.meant(name, unique(names)))
		}
	}
}

func exampleSink(names []string) string {
	if len(names) == 0 || names[0] == "" {
		return "…"
	}
	return clip(names[0])
}

func (r *rules) match(path string, m *Match) {
	w := &r.config.Watch
	for _, list := range []struct {
		key   string
		names []string
	}{{"kinds", m.Kinds}, {"namespaces", m.Namespaces}, {"excludeNamespaces", m.ExcludeNamespaces}, {"verbs", m.Verbs}, {"classes", m.Classes}} {
		some(r, join(path, list.key), list.names)
		r.twice(join(path, list.key), list.names)
	}
	for i, kind := range m.Kinds {
		at := index(join(path, "kinds"), i)
		r.matchedKind(at, kind)
		r.watched(at, kind, w.Kinds, "watch.kinds", overlap)
	}
	for i, name := range m.Namespaces {
		at := index(join(path, "namespaces"), i)
		r.pattern(at, name, namespacePattern, "a namespace")
		r.watched(at, name, w.Namespaces, "watch.namespaces", sameName)
		if slices.Contains(w.ExcludeNamespaces, name) {
			r.warn(at, "matches nothing: %q is left out by watch.excludeNamespaces", clip(name))
		}
	}
	for i, name := range m.ExcludeNamespaces {
		r.pattern(index(join(path, "excludeNamespaces"), i), name, namespacePattern, "a namespace")
	}
	for i, name := range m.Verbs {
		r.verb(index(join(path, "verbs"), i), name, m.Verbs)
	}
	for i, name := range m.Classes {
		r.one(index(join(path, "classes"), i), "sort of change", name, words(event.Classes()))
	}
	r.filled(join(path, "labels"), m.Labels)
	r.labels(join(path, "labels"), m.Labels)
}

// sameName reports whether a pattern matches a name.
func sameName(pattern, name string) bool { return newPatterns([]string{pattern}).match(name) }

// watched warns of a name that is matched and not watched. A file without such names leaves them
// to the command line.
func (r *rules) watched(path, name string, all []string, what string, matches func(match, watched string) bool) {
	if len(all) == 0 {
		return
	}
	if !slices.ContainsFunc(all, func(watched string) bool { return matches(name, watched) }) {
		r.warn(path, "matches nothing: %q is not among %s", clip(name), what)
	}
}

func (r *rules) verb(path, name string, all []string) {
	w := &r.config.Watch
	r.one(path, "verb", name, words(event.Verbs()))
	switch {
	case event.Verb(name) == event.Existing && r.nodes["watch.initial"] != nil && !w.Initial:
		r.warn(path, "matches nothing: watch.initial is false")
	case event.Verb(name) == event.Updated && w.Settle > 0 && !slices.Contains(all, string(event.Settled)):
		r.warn(path, "with watch.settle, an object that is at rest after several changes is reported as settled; name that too to match all changes")
	}
}
