// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/setpoint-io/setpoint/internal/podstate"
)

// recreate takes the next step of a rollout in which old and new Pods never live
// at the same time: all old sets to nothing, a wait until their Pods have ended,
// then the current set.
func (p *planner) recreate() {
	if old := active(p.old); len(old) > 0 {
		for _, set := range old {
			p.scale(set, 0)
		}
		return
	}
	if p.oldPodsLeft() {
		return
	}
	if p.current == nil {
		p.create(p.Desired)
		return
	}
	p.scale(p.current, p.Desired)
}

// oldPodsLeft reports whether a container of an old template may still run. The sets
// count as well as the Pods: either informer may be behind the other.
func (p *planner) oldPodsLeft() bool {
	for _, set := range p.old {
		s := &set.Status
		if !steady(set) || s.Replicas > 0 || s.TerminatingReplicas != nil && *s.TerminatingReplicas > 0 {
			return true
		}
		for _, pod := range p.pods[set.UID] {
			if !podstate.Ended(pod) { // one that is being deleted has not, until it is gone
				return true
			}
		}
	}
	return false
}

// mayHaveOldPods reports whether the Pods of a set may matter to recreate.
func mayHaveOldPods(d *appsv1.Deployment, set *appsv1.ReplicaSet) bool {
	return d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType && size(set) == 0
}
