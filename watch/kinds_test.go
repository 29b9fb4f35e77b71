// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"testing"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

func served(group, version, plural, kind, singular string, short ...string) client.Served {
	return client.Served{
		Resource: object.Resource{Group: group, Version: version, Plural: plural, Kind: kind, Namespaced: true},
		Verbs:    []string{"get", "list", "watch"}, Singular: singular, Short: short,
	}
}

var someKinds = []client.Served{
	served("", "v1", "pods", "Pod", "pod", "po"),
	served("events.k8s.io", "v1", "events", "Event", "event", "ev"),
	served("", "v1", "events", "Event", "event", "ev"),
	served("apps", "v1", "deployments", "Deployment", "deployment", "deploy"),
	served("metrics.example.com", "v1", "pods", "PodMetrics", ""),
	served("example.com", "v1alpha1", "widgets", "Widget", "widget"),
	{Resource: object.Resource{Version: "v1", Plural: "bindings", Kind: "Binding"}, Verbs: []string{"create"}},
}

func TestANameMeansAKindAsItDoesToKubectl(t *testing.T) {
	for name, want := range map[string]string{
		"pods": "pods.v1.", "pod": "pods.v1.", "po": "pods.v1.", "Pod": "pods.v1.", "PODS": "pods.v1.", "pods.": "pods.v1.", "pods.v1.": "pods.v1.",
		"deploy": "deployments.v1.apps", "deployments.apps": "deployments.v1.apps", "Deployment.apps": "deployments.v1.apps", "deployments.v1.apps": "deployments.v1.apps",
		"events": "events.v1.", "ev.events.k8s.io": "events.v1.events.k8s.io",
		"pods.metrics.example.com": "pods.v1.metrics.example.com", "podmetrics": "pods.v1.metrics.example.com",
		"widgets.v1alpha1.example.com": "widgets.v1alpha1.example.com",
	} {
		got, err := FindKind(someKinds, name)
		if is := got.Plural + "." + got.Version + "." + got.Group; err != nil || is != want {
			t.Errorf("%q is %s (%v), want %s", name, is, err, want)
		}
	}
}

func TestAKindThatIsNotServedIsNamedWithTheNearestOne(t *testing.T) {
	for name, want := range map[string]struct {
		nearest string
		appear  bool
	}{
		"deploymnets":            {"deployments", false},
		"bindings":               {"", false}, // it cannot be watched
		"widgets.v1.example.com": {"widgets", true},
		"widgts.example.com":     {"widgets", true},
		"foo":                    {"", false},
		"deployments.extensions": {"deployments", true},
		"":                       {"", false},
	} {
		_, err := FindKind(someKinds, name)
		var unknown *UnknownKindError
		if !errors.As(err, &unknown) || unknown.Name != name || unknown.mayAppear() != want.appear {
			t.Errorf("%q: %v, which may appear: %t", name, err, unknown != nil && unknown.mayAppear())
			continue
		}
		if unknown.Nearest != want.nearest {
			t.Errorf("%q: the nearest is %q, want %q", name, unknown.Nearest, want.nearest)
		}
	}
}

func TestEveryKindHasEachObjectOnce(t *testing.T) {
	var all []string
	for _, s := range everyKind(someKinds) {
		all = append(all, s.Resource.String())
	}
	if len(all) != 5 {
		t.Errorf("every kind is %q; want no bindings, which cannot be watched, and Events once", all)
	}
}
