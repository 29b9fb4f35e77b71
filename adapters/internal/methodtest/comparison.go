// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package methodtest

import (
	"fmt"
	"strings"
	"testing"
)

// A Comparison does the same with both sides. S is a side: what a test needs of an implementation.
type Comparison[S any] struct {
	Name string
	// Of are the methods that it compares: "cache.Store.Get".
	Of []string
	// Run does something with a side, and writes what it sees to the transcript.
	Run func(t *testing.T, side S, seen *Transcript)
	// Differs is what each side sees, where they differ. Without it they see the same.
	Differs *Difference
}

// Difference is what the two sides see.
type Difference struct{ Theirs, Ours string }

// Transcript is what one side has seen.
type Transcript struct{ lines []string }

// Note adds a line.
func (s *Transcript) Note(format string, args ...any) {
	s.lines = append(s.lines, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// String returns all lines.
func (s *Transcript) String() string { return strings.Join(s.lines, "\n") }

// Compare runs the comparison with both sides. on calls a function with each side, in an environment
// of its own.
func (c Comparison[S]) Compare(t *testing.T, on func(t *testing.T, ours bool, run func(t *testing.T, side S))) {
	t.Helper()
	seen := map[bool]*Transcript{true: {}, false: {}}
	for ours, transcript := range seen {
		on(t, ours, func(t *testing.T, side S) { c.Run(t, side, transcript) })
	}
	theirs, ours := seen[false].String(), seen[true].String()
	switch {
	case theirs == "":
		t.Error("the comparison has written nothing down")
	case c.Differs == nil && theirs != ours:
		t.Errorf("the peer's:\n%s\nours:\n%s", theirs, ours)
	case c.Differs != nil && theirs != strings.TrimSpace(c.Differs.Theirs):
		t.Errorf("the peer's:\n%s\nwant\n%s", theirs, strings.TrimSpace(c.Differs.Theirs))
	case c.Differs != nil && ours != strings.TrimSpace(c.Differs.Ours):
		t.Errorf("ours:\n%s\nwant\n%s", ours, strings.TrimSpace(c.Differs.Ours))
	case c.Differs != nil && theirs == ours:
		t.Error("the comparison names a difference, and there is none")
	}
}

// Shown is which methods a list of comparisons shows to be the same, and which to differ.
type Shown struct{ Same, Differs map[string]bool }

// ShownBy returns what comparisons show.
func ShownBy[S any](comparisons []Comparison[S]) Shown {
	shown := Shown{map[string]bool{}, map[string]bool{}}
	for _, c := range comparisons {
		for _, method := range c.Of {
			if c.Differs == nil {
				shown.Same[method] = true
			} else {
				shown.Differs[method] = true
			}
		}
	}
	return shown
}
