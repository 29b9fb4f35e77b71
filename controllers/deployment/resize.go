// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
)

// resized reports whether the size of the Deployment has changed since its sets were last
// scaled. Then that is done first, and no step of a rollout.
//
// With Recreate and several active sets there are no proportions to keep: the
// rollout brings all sets to their sizes.
func (p *planner) resized() bool {
	sets := active(p.sets())
	if p.deployment.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType && len(sets) > 1 {
		return false
	}
	return slices.ContainsFunc(sets, func(set *appsv1.ReplicaSet) bool {
		desired, known := annotated(set, desiredAnnotation)
		return known && desired != p.Desired
	})
}

// resize brings the Deployment to its size without moving the rollout. If one set
// has all Pods, it takes the whole size. If several have some, each keeps its
// share, so that a template that may be bad is not rolled out faster by scaling.
//
// Pods are given up at once. New ones are added only after the Pods that were given up
// before are gone.
func (p *planner) resize() {
	sets := active(p.sets())
	switch {
	case len(sets) <= 1:
		if one := p.onlyOrLatest(sets); one != nil {
			others := slices.DeleteFunc(p.sets(), func(set *appsv1.ReplicaSet) bool { return set == one })
			if p.Desired <= size(one) || allSteady(others) {
				p.mark(one)
				p.scale(one, p.Desired)
			}
		}
	case p.saturated():
		for _, set := range active(p.old) {
			p.scale(set, 0)
		}
	case p.deployment.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType:
		p.resizeAll(sets)
	}
}

// onlyOrLatest returns the only active set, or else the current one, or else the
// newest, or nil if there is none at all.
func (p *planner) onlyOrLatest(active []*appsv1.ReplicaSet) *appsv1.ReplicaSet {
	switch {
	case len(active) == 1:
		return active[0]
	case p.current != nil:
		return p.current
	case len(p.old) > 0:
		return p.old[len(p.old)-1]
	}
	return nil
}

// saturated reports whether the current set has all Pods that the Deployment
// wants, and they are available: the others are left-overs, such as adopted sets.
func (p *planner) saturated() bool {
	if p.current == nil {
		return false
	}
	desired, known := annotated(p.current, desiredAnnotation)
	return known && desired == p.Desired && size(p.current) == p.Desired && p.current.Status.AvailableReplicas == p.Desired
}

// resizeAll adds or takes away what is missing to the highest number of Pods, in
// proportion to the sizes of the sets. Rounding leaves something over; the largest
// set takes it.
func (p *planner) resizeAll(sets []*appsv1.ReplicaSet) {
	var most int32
	if p.Desired > 0 {
		most = p.Most()
	}
	missing := most - total(sets, size)
	if missing > 0 && !allSteady(p.sets()) {
		return
	}
	// The largest first. Of two of a size, the newer grows and the older shrinks.
	slices.SortFunc(sets, func(a, b *appsv1.ReplicaSet) int {
		switch {
		case size(a) != size(b):
			return int(size(b) - size(a))
		case missing > 0:
			return byAge(b, a)
		}
		return byAge(a, b)
	})
	left := missing
	sizes := make([]int32, len(sets))
	for i, set := range sets {
		share := p.share(set)
		if missing > 0 {
			share = min(share, left)
		} else {
			share = max(share, left)
		}
		if left == 0 {
			share = 0
		}
		sizes[i] = size(set) + share
		left -= share
	}
	sizes[0] = max(0, sizes[0]+left)
	for i, set := range sets {
		p.mark(set)
		p.scale(set, sizes[i])
	}
}

// share returns by how much a set grows, or shrinks if it is negative, so that it
// keeps its part of all Pods.
func (p *planner) share(set *appsv1.ReplicaSet) int32 {
	if p.Desired == 0 {
		return -size(set)
	}
	before, known := annotated(set, maxAnnotation)
	if !known || before == 0 {
		// The annotation was removed: the present size is the best guess.
		if before = p.deployment.Status.Replicas; before == 0 {
			return 0
		}
	}
	now := math.Round(float64(size(set)) * float64(p.Most()) / float64(before))
	return int32(min(now, math.MaxInt32)) - size(set)
}
