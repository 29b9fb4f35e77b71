// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package methodtest

import (
	"strings"
	"testing"
)

type pair interface {
	First()
	Second()
}

func TestATableHasEachMethodWithAComparisonForItsClaim(t *testing.T) {
	t.Parallel()
	shown := func(same, differs string) Shown {
		s := Shown{map[string]bool{}, map[string]bool{}}
		for name := range strings.FieldsSeq(same) {
			s.Same["x.Pair."+name] = true
		}
		for name := range strings.FieldsSeq(differs) {
			s.Differs["x.Pair."+name] = true
		}
		return s
	}
	const heading = "## `x.Pair`\n\n| method | here |\n|---|---|\n"
	for name, one := range map[string]struct {
		document string
		shown    Shown
		want     string // part of the only error
	}{
		"right":                         {heading + "| `First` | As in x |\n| `Second` | does nothing |\n", shown("First", "Second"), ""},
		"two in a row":                  {heading + "| `First`, `Second` | As in x |\n", shown("First Second", ""), ""},
		"a restriction, with both":      {heading + "| `First` | As in x |\n| `Second` | As in x; not at night |\n", shown("First Second", "Second"), ""},
		"no table":                      {"## y.Pair\n| `First`, `Second` | As in x |\n", shown("", ""), "no table"},
		"a method is missing":           {heading + "| `First` | As in x |\n", shown("First", ""), "no row for Second"},
		"one too many":                  {heading + "| `First`, `Second`, `Third` | As in x |\n", shown("First Second", ""), "a row for Third"},
		"a row below the next heading":  {heading + "| `First` | As in x |\n## other\n| `Second` | As in x |\n", shown("First Second", ""), "no row for Second"},
		"a claim without comparison":    {heading + "| `First`, `Second` | As in x |\n", shown("First", ""), `x.Pair.Second: "As in x", and no comparison shows it`},
		"a difference without one":      {heading + "| `First` | As in x |\n| `Second` | is quick |\n", shown("First", ""), "no comparison shows a difference"},
		"a claim against a comparison":  {heading + "| `First`, `Second` | As in x |\n", shown("First Second", "Second"), "a comparison shows a difference"},
		"a restriction, with one":       {heading + "| `First` | As in x |\n| `Second` | As in x; not at night |\n", shown("First Second", ""), "no comparison shows a difference"},
		"a comparison of another thing": {heading + "| `First`, `Second` | As in x |\n", shown("First Second Third", ""), "which is no method"},
	} {
		wrong := Check(one.document, []Interface{Of[pair]("x.Pair")}, one.shown)
		if (one.want == "") != (len(wrong) == 0) || one.want != "" && (len(wrong) != 1 || !strings.Contains(wrong[0], one.want)) {
			t.Errorf("%s: have %q, want %q", name, wrong, one.want)
		}
	}
}

func TestComparisonsShowTheirMethods(t *testing.T) {
	t.Parallel()
	shown := ShownBy([]Comparison[int]{{Of: []string{"a", "b"}}, {Of: []string{"b"}, Differs: &Difference{"x", "y"}}})
	if !shown.Same["a"] || !shown.Same["b"] || shown.Differs["a"] || !shown.Differs["b"] {
		t.Errorf("have %v", shown)
	}
	var ran []bool
	Comparison[bool]{Run: func(_ *testing.T, ours bool, seen *Transcript) { ran = append(ran, ours); seen.Note("%t", ours) }, Differs: &Difference{"false", "true"}}.
		Compare(t, func(t *testing.T, ours bool, run func(*testing.T, bool)) { run(t, ours) })
	if len(ran) != 2 || ran[0] == ran[1] {
		t.Errorf("ran with %v", ran)
	}
}
