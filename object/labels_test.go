// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/object"
)

var _ labels.Labels = object.Labels("")

func TestLabelsAreTheMapThatTheyWereMadeFrom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "map")
		l := object.LabelsOf(m)
		if got := maps.Collect(l.All()); !maps.Equal(got, m) {
			t.Fatalf("have %v, want %v", got, m)
		}
		if l != object.LabelsOf(maps.Clone(m)) || l.Len() != len(m) || !maps.Equal(l.Map(), m) {
			t.Fatalf("%q is not one set", l)
		}
		for k, v := range m {
			if have, ok := l.Lookup(k); !ok || have != v || !l.Has(k) || l.Get(k) != v {
				t.Fatalf("label %q: have %q, %v; want %q", k, have, ok, v)
			}
		}
		other := rapid.String().Draw(t, "other")
		if _, there := m[other]; l.Has(other) != there {
			t.Fatalf("Has(%q) = %v", other, !there)
		}
	})
}

func TestLabelsSelectAsAMapDoes(t *testing.T) {
	l := object.LabelsOf(map[string]string{"tier": "front", "app": "web"})
	if have := l.String(); have != "app=web,tier=front" {
		t.Errorf("String() = %q", have)
	}
	for text, want := range map[string]bool{"app=web": true, "app in (api,web),!canary": true, "tier!=front": false, "canary": false} {
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if have := selector.Matches(l); have != want {
			t.Errorf("%s: have %v, want %v", text, have, want)
		}
	}
}

func FuzzLabelsOfAnyBytes(f *testing.F) {
	f.Add("\x03app\x03web", "app")
	f.Add("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "")
	f.Add("\x7f", "a")
	f.Fuzz(func(t *testing.T, s, key string) {
		l := object.Labels(s)
		if value, ok := l.Lookup(key); ok && l.Get(key) != value {
			t.Fatal("Get and Lookup disagree")
		}
		if len(l.Map()) > l.Len() {
			t.Fatal("a map larger than the set")
		}
		_ = l.String()
	})
}
