// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestIntervalsHaveUpstreamsText(t *testing.T) {
	for _, c := range []struct {
		name, text string
		limit      int
		want       string
	}{
		{"nothing", "", 10, ""},
		{"single indexes", "1,3,5", 10, "1,3,5"},
		{"two neighbours have a comma", "1-2", 10, "1,2"},
		{"three have a dash", "1,2,3", 10, "1-3"},
		{"ranges", "1,3-5,7", 10, "1,3-5,7"},
		{"a limit cuts", "1,3-5,7", 5, "1,3,4"},
		{"what cannot be read is left out", "1,x,3-y,-4,5-", 10, "1"},
		{"a range that ends before it begins", "5-3,7", 10, "7"},
		{"out of order, and twice", "7,1-3,2-4", 10, "1-4,7"},
		{"no number at all", "999999999999999999999,2", 10, "2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := parseIntervals(c.text, c.limit).String(); got != c.want {
				t.Errorf("parseIntervals(%q, %d) = %q, want %q", c.text, c.limit, got, c.want)
			}
		})
	}
}

// TestIntervalsAreSets compares the arithmetic of intervals with that of sets of indexes.
func TestIntervalsAreSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 40
		draw := rapid.SliceOf(rapid.IntRange(0, limit-1))
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		x, y := indexSet(slices.Clone(a)), indexSet(slices.Clone(b))
		both, either := 0, []int{}
		for i := range limit {
			inA, inB := slices.Contains(a, i), slices.Contains(b, i)
			if x.has(i) != inA || y.has(i) != inB {
				t.Fatalf("%v and %v, asked for %d: %v, %v", a, b, i, x, y)
			}
			if inA && inB {
				both++
			}
			if inA || inB {
				either = append(either, i)
			}
		}
		union := x.union(y)
		if union.size() != len(either) || !slices.Equal(union, indexSet(either)) {
			t.Fatalf("%v and %v are %v", x, y, union)
		}
		if got := x.common(y); got != both {
			t.Fatalf("%v and %v have %d in common, want %d", x, y, got, both)
		}
		if got := parseIntervals(union.String(), limit); !slices.Equal(got, union) {
			t.Fatalf("%q is %v, want %v", union.String(), got, union)
		}
		n := rapid.IntRange(0, limit).Draw(t, "n")
		var missing []int
		for i := range limit {
			if len(missing) < n && !slices.Contains(either, i) {
				missing = append(missing, i)
			}
		}
		if got := union.missing(n, limit); !slices.Equal(got, missing) {
			t.Fatalf("%v lacks %v, want %v", union, got, missing)
		}
	})
}

// A Job of 100,000 completions must cost no more than its intervals.
func TestMissingIndexesAreFoundWithoutALookAtEach(t *testing.T) {
	done := intervals{{0, 99_990}, {99_993, 1 << 40}}
	if n := testing.AllocsPerRun(10, func() {
		if got := done.missing(500, 1<<40); !slices.Equal(got, []int{99_991, 99_992}) {
			t.Errorf("missing are %v", got)
		}
	}); n > 3 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParseIntervals(f *testing.F) {
	for _, text := range []string{"", "1,3-5,7", "0-", "--", "5-3", "1,,2", "99999999999999999999"} {
		f.Add(text, 10)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		s := parseIntervals(text, limit)
		if again := parseIntervals(s.String(), limit); !slices.Equal(again, s) {
			t.Errorf("%q is %v, and %q is %v", text, s, s.String(), again)
		}
		for i, part := range s {
			if part.first > part.last || part.first < 0 || part.last >= limit || i > 0 && part.first <= s[i-1].last+1 {
				t.Errorf("%q is %v", text, s)
			}
		}
	})
}
