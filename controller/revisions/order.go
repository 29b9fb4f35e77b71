// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"cmp"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
)

// Sort sorts revisions from the oldest to the newest: by number, then by creation, then by
// name.
func Sort(revisions []*appsv1.ControllerRevision) {
	slices.SortStableFunc(revisions, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(
			cmp.Compare(a.Revision, b.Revision),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
}

// Next returns the number of the next revision. The revisions must be sorted. Numbers begin
// with 1. The highest number is its own successor; the order then is that of creation.
func Next(revisions []*appsv1.ControllerRevision) int64 {
	if len(revisions) == 0 {
		return 1
	}
	newest := revisions[len(revisions)-1].Revision
	return newest + min(1, math.MaxInt64-newest)
}

// Equal returns the revisions that have the data of a state, in the order of revisions.
func (s State) Equal(revisions []*appsv1.ControllerRevision) []*appsv1.ControllerRevision {
	var equal []*appsv1.ControllerRevision
	for _, r := range revisions {
		if s.equal(r) {
			equal = append(equal, r)
		}
	}
	return equal
}

// Surplus returns the revisions that exceed the history limit of a StatefulSet, the oldest
// first. The limit is on revisions that are not in use; one in use does not count and is never
// returned. A negative limit is none. The revisions must be sorted.
func Surplus(revisions []*appsv1.ControllerRevision, limit int32, inUse func(*appsv1.ControllerRevision) bool) []*appsv1.ControllerRevision {
	idle := slices.DeleteFunc(slices.Clone(revisions), inUse)
	return first(idle, len(idle), limit)
}

// SurplusOfAll is [Surplus] with the limit of a DaemonSet, which is on revisions in use too.
// The revision of the DaemonSet as it is must not be among the revisions. Those in use are
// still never returned.
func SurplusOfAll(revisions []*appsv1.ControllerRevision, limit int32, inUse func(*appsv1.ControllerRevision) bool) []*appsv1.ControllerRevision {
	idle := slices.DeleteFunc(slices.Clone(revisions), inUse)
	return first(idle, len(revisions), limit)
}

// first returns as many of the idle revisions as there are more than limit in all.
func first(idle []*appsv1.ControllerRevision, all int, limit int32) []*appsv1.ControllerRevision {
	if limit < 0 {
		return nil
	}
	return idle[:min(len(idle), max(0, all-int(limit)))]
}
