// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package upstreamtest

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var seedFlag = flag.Uint64("seed", 0, "repeats a run with this seed; 0 is another seed each time")

// generator draws what the tests generate. It is not safe for concurrent use.
type generator struct{ *rand.Rand }

// generate returns a generator, and logs its seed if the test fails.
func generate(t *testing.T) generator {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the seed is %d: go test -run %s -seed %d", seed, t.Name(), seed)
		}
	})
	return generator{rand.New(rand.NewPCG(seed, 0))}
}

// one returns one of several values.
func one[T any](g generator, values ...T) T { return values[g.IntN(len(values))] }

// maybe returns a value, or nil in every other case.
func maybe[T any](g generator, value T) *T {
	if g.IntN(2) == 0 {
		return nil
	}
	return &value
}
