// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import "slices"

// A Rank is one reason to delete one object of an owner before another: below zero if a
// goes before b, above zero if b goes before a, and zero if for this reason neither does.
// It changes nothing. The package podrank has that of ReplicaSets.
type Rank[T any] func(a, b T) int

// Surplus returns the n objects that are missed least, in the order in which to delete
// them: the first of ranks that tells two objects apart decides, and where none does they
// stay as they came. It returns all where there are no more than n, and does not change
// the slice that it is given.
//
//	// Of our Pods those go first that say that they are idle.
//	for _, pod := range controller.Surplus(pods, len(pods)-wanted, idleFirst, podrank.New(options)) { ... }
func Surplus[T any](objects []T, n int, ranks ...Rank[T]) []T {
	sorted := slices.Clone(objects)
	slices.SortStableFunc(sorted, func(a, b T) int {
		for _, rank := range ranks {
			if c := rank(a, b); c != 0 {
				return c
			}
		}
		return 0
	})
	return sorted[:max(0, min(n, len(sorted)))]
}
