// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodettl

import (
	"testing"

	"pgregory.net/rapid"
)

func TestTheTimeFollowsTheSizeOfTheClusterAndStaysNearALimit(t *testing.T) {
	at := 0
	for _, c := range []struct{ size, seconds int }{
		{0, 0}, {100, 0}, {101, 15}, {100, 15}, {90, 15}, {89, 0}, {100, 0}, {101, 15},
		{500, 15}, {501, 30}, {450, 30}, {449, 15}, {1001, 60}, {900, 60}, {899, 30},
		{2001, 300}, {1800, 300}, {1799, 60}, {5000, 300}, {3, 0},
	} {
		at = next(at, c.size)
		if got := steps[at].seconds; got != c.seconds {
			t.Errorf("with %d nodes now the time is %d s, want %d s", c.size, got, c.seconds)
		}
	}
}

func TestWhateverHappensTheStepFitsTheSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := 0
		for _, size := range rapid.SliceOf(rapid.IntRange(0, 3000)).Draw(t, "sizes") {
			before := at
			at = next(at, size)
			if size < steps[at].least || size > steps[at].most {
				t.Fatalf("%d nodes on the step %+v", size, steps[at])
			}
			if at != before && size >= steps[before].least && size <= steps[before].most {
				t.Fatalf("%d nodes left the step %+v, which they fit", size, steps[before])
			}
		}
	})
}
