// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodettl

import "math"

// step is a range of sizes of a cluster, in nodes, and what goes with it.
type step struct {
	least, most int // a cluster of another size leaves the step
	seconds     int
}

// steps overlap: a cluster stays on its step as long as it can.
// Source: k8s.io/kubernetes/pkg/controller/ttl, ttlBoundaries.
var steps = [...]step{
	{0, 100, 0},
	{90, 500, 15},
	{450, 1000, 30},
	{900, 2000, 60},
	{1800, math.MaxInt, 300},
}

// next returns the number of the step of a cluster that was on one, and has a size now.
func next(at, size int) int {
	for size > steps[at].most {
		at++
	}
	for size < steps[at].least {
		at--
	}
	return at
}
