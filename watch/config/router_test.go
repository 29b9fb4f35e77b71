// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/where"
)

var (
	pods        = event.Kind{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true}
	deployments = event.Kind{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespaced: true}
	nodes       = event.Kind{Version: "v1", Kind: "Node", Resource: "nodes"}
)

func labelledAs(labels ...string) map[string]any {
	set := map[string]any{}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		set[key] = value
	}
	return map[string]any{"metadata": map[string]any{"labels": set}, "spec": map[string]any{"replicas": int64(3)}}
}

const fourSinks = "sinks: [{name: a, terminal: }, {name: b, terminal: }, {name: c, terminal: }, {name: d, terminal: }]\n"

func TestEventsGoWhereTheRoutesSay(t *testing.T) {
	pod := event.Event{
		Verb: event.Updated, Kind: pods, Key: object.Key{Namespace: "team-a", Name: "web-1"}, Classes: []event.Class{event.Content, event.Status},
		Old: labelledAs("tier=web"), New: labelledAs("tier=db"),
	}
	with := func(change func(*event.Event)) *event.Event {
		e := pod
		change(&e)
		return &e
	}
	for _, test := range []struct {
		name, routes string
		event        *event.Event
		want         string
	}{
		{"without routes all sinks get it", "", &pod, "a b c d"},
		{"the first that matches is the last", "routes: [{sinks: [b]}, {sinks: [c]}]", &pod, "b"},
		{"unless it continues", "routes: [{sinks: [b], continue: true}, {sinks: [c]}, {sinks: [d]}]", &pod, "b c"},
		{"each sink once", "routes: [{sinks: [b, a], continue: true}, {sinks: [a, c], continue: true}, {sinks: [c, b, d]}]", &pod, "b a c d"},
		{"no route matches", "routes: [{match: {kinds: [services]}, sinks: [a]}]", &pod, ""},
		{"a route without sinks is an end", "routes: [{match: {kinds: [pods]}, sinks: []}, {sinks: [a]}]", &pod, ""},
		{"what came before it stays", "routes: [{sinks: [b], continue: true}, {match: {kinds: [pods]}, sinks: []}, {sinks: [a]}]", &pod, "b"},
		{"kind", "routes: [{match: {kinds: [deployments.apps]}, sinks: [a]}]", with(func(e *event.Event) { e.Kind = deployments }), "a"},
		{"kind of another group", "routes: [{match: {kinds: [deployments.example.com]}, sinks: [a]}]", with(func(e *event.Event) { e.Kind = deployments }), ""},
		{"kinds of a group", "routes: [{match: {kinds: ['*.apps']}, sinks: [a]}]", with(func(e *event.Event) { e.Kind = deployments }), "a"},
		{"object", "routes: [{match: {kinds: [pods/web-2]}, sinks: [a]}, {match: {kinds: [services, pods/web-1]}, sinks: [b]}]", &pod, "b"},
		{"object of another kind", "routes: [{match: {kinds: [deployments.apps/web-1]}, sinks: [a]}]", &pod, ""},
		{"objects by a pattern", "routes: [{match: {kinds: ['pods/api-*']}, sinks: [a]}, {match: {kinds: ['pods/web-*']}, sinks: [b]}]", &pod, "b"},
		{"objects of kinds of a group", "routes: [{match: {kinds: ['*.apps/web-1']}, sinks: [a]}]", with(func(e *event.Event) { e.Kind = deployments }), "a"},
		{"a pattern for kinds is none for objects", "routes: [{match: {kinds: ['p*']}, sinks: [a]}]", &pod, "a"},
		{"namespace", "routes: [{match: {namespaces: [team-b, team-a]}, sinks: [a]}]", &pod, "a"},
		{"namespaces by a pattern", "routes: [{match: {namespaces: ['team-*']}, sinks: [a]}]", &pod, "a"},
		{"namespace left out", "routes: [{match: {excludeNamespaces: ['*-a']}, sinks: [a]}]", &pod, ""},
		{"no namespace is in none", "routes: [{match: {namespaces: ['*']}, sinks: [a]}]", with(func(e *event.Event) { e.Kind, e.Key.Namespace = nodes, "" }), ""},
		{"no namespace is in none of those left out", "routes: [{match: {excludeNamespaces: ['*']}, sinks: [a]}]", with(func(e *event.Event) { e.Kind, e.Key.Namespace = nodes, "" }), "a"},
		{"no namespace is not left out", "routes: [{match: {excludeNamespaces: [kube-system]}, sinks: [a]}]", with(func(e *event.Event) { e.Kind, e.Key.Namespace = nodes, "" }), "a"},
		{"verb", "routes: [{match: {verbs: [deleted]}, sinks: [a]}, {match: {verbs: [created, updated]}, sinks: [b]}]", &pod, "b"},
		{"class", "routes: [{match: {classes: [heartbeats]}, sinks: [a]}, {match: {classes: [status]}, sinks: [b]}]", &pod, "b"},
		{"labels after the change", "routes: [{match: {labels: tier=db}, sinks: [a]}]", &pod, "a"},
		{"labels before the change", "routes: [{match: {labels: tier=web}, sinks: [a]}]", &pod, "a"},
		{"labels at no time", "routes: [{match: {labels: tier=cache}, sinks: [a]}]", &pod, ""},
		{"a state that is not there has no labels", "routes: [{match: {labels: '!tier'}, sinks: [a]}]", with(func(e *event.Event) { e.Old = nil }), ""},
		{"no labels", "routes: [{match: {labels: '!tier'}, sinks: [a]}]", with(func(e *event.Event) { e.Old, e.New = nil, map[string]any{"metadata": "x"} }), "a"},
		{"condition", "routes: [{match: {where: new.spec.replicas > 3}, sinks: [a]}, {match: {where: new.spec.replicas == 3}, sinks: [b]}]", &pod, "b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			sinks, err := parse(t, fourSinks+test.routes).Router().Route(test.event)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(sinks, " "); got != test.want {
				t.Errorf("goes to %q, want %q", got, test.want)
			}
		})
	}
}

func TestARouteThatCannotBeDecidedDoesNotMatch(t *testing.T) {
	r := parse(t, fourSinks+"routes: [{match: {where: new.spec.nothing > 3}, sinks: [a]}, {sinks: [b]}]").Router()
	sinks, err := r.Route(&event.Event{Verb: event.Created, Kind: pods, New: labelledAs()})
	if !slices.Equal(sinks, []string{"b"}) || !errors.Is(err, where.ErrAbsent) || !strings.HasPrefix(err.Error(), "routes[0]: ") {
		t.Errorf("%v, %v", sinks, err)
	}
}

func TestWhatCostsLittleIsAskedFirst(t *testing.T) {
	// The condition cannot be decided, so an error shows that it was asked.
	r := parse(t, fourSinks+"routes: [{match: {kinds: [services], namespaces: [x], where: new.spec.nothing > 3}, sinks: [a]}]").Router()
	for _, kind := range []string{"pods", "services"} {
		if sinks, err := r.Route(&event.Event{Verb: event.Created, Kind: event.Kind{Resource: kind}, Key: object.Key{Namespace: "y"}, New: labelledAs()}); err != nil || len(sinks) > 0 {
			t.Errorf("%s: %v, %v", kind, sinks, err)
		}
	}
}

func TestARouterIsSharedByManyAndChangesNothing(t *testing.T) {
	r := parse(t, fourSinks+`routes:
- {match: {where: event.verb == "created"}, sinks: [a], continue: true}
- {match: {namespaces: ['t*']}, sinks: [b], continue: true}
- {sinks: [c]}`).Router()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 100 {
				sinks, err := r.Route(&event.Event{Verb: event.Created, Kind: pods, Key: object.Key{Namespace: "t", Name: fmt.Sprint(i, j)}})
				if err != nil || !slices.Equal(sinks, []string{"a", "b", "c"}) {
					t.Errorf("%v, %v", sinks, err)
				}
			}
		})
	}
	all.Wait()
}

func TestAStarStandsForAnyCharacters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab*")), 1, 8, -1).Draw(t, "pattern")
		name := rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 0, 10, -1).Draw(t, "name")
		if got, want := newPatterns([]string{text}).match(name), like(text, name); got != want {
			t.Fatalf("%q matches %q: %v, want %v", text, name, got, want)
		}
	})
}

// like is what a pattern means.
func like(pattern, name string) bool {
	switch {
	case pattern == "":
		return name == ""
	case pattern[0] == '*':
		return like(pattern[1:], name) || name != "" && like(pattern, name[1:])
	}
	return name != "" && name[0] == pattern[0] && like(pattern[1:], name[1:])
}

func BenchmarkRoute(b *testing.B) {
	file := func(match string) *Router {
		c, err := Parse([]byte(head+fourSinks+"routes:\n"+strings.Repeat("- {match: {kinds: [services], namespaces: [x]}, sinks: [a]}\n", 9)+"- {match: {"+match+"}, sinks: [b]}\n"), "w.yaml")
		if err != nil {
			b.Fatal(err)
		}
		return c.Router()
	}
	e := &event.Event{Verb: event.Updated, Kind: deployments, Key: object.Key{Namespace: "team-a", Name: "web"}, New: labelledAs("tier=web")}
	for _, test := range []struct{ name, match string }{
		{"kinds and namespaces", "kinds: [deployments.apps], namespaces: [team-a]"},
		{"patterns", "kinds: ['*.apps'], namespaces: ['team-*']"},
		{"labels", "labels: tier=web"},
		{"condition", "where: new.spec.replicas == 3"},
	} {
		r := file(test.match)
		b.Run("tenth route by "+test.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if sinks, err := r.Route(e); err != nil || len(sinks) != 1 {
					b.Fatal(sinks, err)
				}
			}
		})
	}
}
