// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
)

// roll takes the next step of a rolling update, if there is one to take: the
// current set grows by what there is room for, the others shrink by what is not
// needed to stay available.
//
// Both can be decided at once: Pods that are added now count as unavailable, and Pods
// that are given up now make room only when their set says that they are gone. So no step
// is taken before every set is steady. The number of Pods of a set that is not steady is
// not known.
func (p *planner) roll() {
	ready := allSteady(p.sets())
	var wanted int32
	switch room := p.Most() - total(p.sets(), size); {
	case p.current == nil:
		if ready {
			wanted = max(0, min(p.Desired, room))
		}
		p.create(wanted)
	case size(p.current) > p.Desired:
		wanted = p.Desired
		p.scale(p.current, wanted)
	case ready:
		wanted = min(p.Desired, size(p.current)+max(0, room))
		p.scale(p.current, wanted)
	}
	if ready {
		p.shrinkOld(wanted)
	}
}

// available returns how many Pods of a set are counted on: what is given up has
// not gone yet, but will.
func available(set *appsv1.ReplicaSet) int32 { return min(set.Status.AvailableReplicas, size(set)) }

// shrinkOld gives up Pods of old sets, the oldest set first. wanted is the size
// of the current set as planned.
func (p *planner) shrinkOld(wanted int32) {
	old := active(p.old)
	// All Pods, without those that must stay available, and those of the current
	// set that are not yet: what must wait for them cannot be given up.
	spare := total(old, size) + wanted - p.Least() - (wanted - available(p.current))
	if spare <= 0 {
		return
	}
	sizes := make([]int32, len(old))
	// Pods that do not work go first. They are not ready, and may block the rollout for
	// ever.
	for i, set := range old {
		given := min(spare, unhealthy(set))
		sizes[i] = size(set) - given
		spare -= given
	}
	// Of those that work, as many as are not needed.
	spare = available(p.current) + total(old, available) - p.Least()
	for i, set := range old {
		if spare > 0 {
			given := min(spare, sizes[i])
			sizes[i] -= given
			spare -= given
		}
		p.scale(set, sizes[i])
	}
}

// unhealthy returns how many Pods a set can lose and keep those that are
// available. A set that shrinks gives up Pods that are not ready first; between
// one that is available and one that is ready but has not been for
// minReadySeconds, it does not choose. The latter therefore only count where no
// Pod is available.
func unhealthy(set *appsv1.ReplicaSet) int32 {
	if set.Status.AvailableReplicas == 0 {
		return size(set)
	}
	return max(0, size(set)-set.Status.ReadyReplicas)
}
