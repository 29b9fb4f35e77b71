// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package owned

import "slices"

// A Rank is one reason to delete one object of an owner before another. It returns a value
// below zero if a is deleted before b, above zero if b is deleted before a, and zero if the
// reason does not decide. It does not change the objects. Package podrank has the rank of
// ReplicaSets.
type Rank[T any] func(a, b T) int

// Surplus returns the n objects to delete, in the order in which to delete them. Of two
// objects, the first rank that decides gives the order; where none decides, they keep the
// order of objects. Surplus returns all objects if there are no more than n. It does not
// change the slice objects.
//
//	// The Pods that are idle are deleted first.
//	for _, pod := range owned.Surplus(pods, len(pods)-wanted, idleFirst, podrank.New(options)) { ... }
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
