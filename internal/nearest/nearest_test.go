// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nearest

import (
	"testing"

	"pgregory.net/rapid"
)

func TestTheNearestNameHasTheFewestEdits(t *testing.T) {
	for _, test := range []struct {
		written string
		known   []string
		want    string
	}{
		{"deploymnet", []string{"daemonset", "deployment"}, "deployment"},
		{"abc", []string{"abd", "abe"}, "abd"},
		{"", []string{"abc", "a"}, ""},
		{"a", nil, ""},
		{"--nods", []string{"--color", "--nodes"}, "--nodes"},
		{"foo", []string{"pods", "nodes"}, ""},
		{"job", []string{"ttl", "pv", "gc"}, ""},
		{"bogus", []string{"color", "config"}, ""},
		{"deploy", []string{"daemonset", "deployment"}, "deployment"},
		{"re", []string{"replicaset"}, ""},
		{"repl", []string{"replicaset", "replicationcontroller"}, ""},
	} {
		if got := Name(test.written, test.known); got != test.want {
			t.Errorf("%q is nearest to %q of %q, want %q", test.written, got, test.known, test.want)
		}
	}
}

func TestAQuestionIsAskedWhereAnAnswerIsNear(t *testing.T) {
	if got, want := Question("--%s", "nods", []string{"nodes"}), "; did you mean --nodes?"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Question("%q", "foo", []string{"nodes"}); got != "" {
		t.Errorf("%q, want nothing", got)
	}
}

func TestDistanceIsAMetricThatCountsSwapsOnce(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0},
		{"kitten", "sitting", 3}, {"ab", "ba", 1}, {"abcd", "acbd", 1}, {"größe", "grösse", 2},
	} {
		if got := distance(test.a, test.b); got != test.want {
			t.Errorf("distance(%q, %q) = %d, want %d", test.a, test.b, got, test.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 0, 8, -1).Draw(t, "a")
		b := rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 0, 8, -1).Draw(t, "b")
		d := distance(a, b)
		if d != distance(b, a) {
			t.Fatalf("not the same both ways: %d, %d", d, distance(b, a))
		}
		if (d == 0) != (a == b) {
			t.Fatalf("%d between %q and %q", d, a, b)
		}
		if d < max(len(a), len(b))-min(len(a), len(b)) || d > max(len(a), len(b)) {
			t.Fatalf("%d is out of bounds", d)
		}
	})
}
