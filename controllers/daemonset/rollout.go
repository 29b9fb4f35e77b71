// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/setpoint-io/setpoint/controller/podlimits"
)

// roll takes the next step of a rollout. A Pod that is not ready is replaced at once: nothing is
// lost. If it becomes ready before the delete, it stays until the next run. The others are replaced within the limits, those first that are ready and not available
// yet.
//
// Source: k8s.io/kubernetes/pkg/controller/daemon, rollingUpdate.
func (p *plan) roll(v *view, limits podlimits.Limits) {
	switch {
	case v.set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateDaemonSetStrategyType:
	case limits.Surge > 0:
		p.rollSurging(v, limits)
	default:
		p.rollDeleting(v, limits)
	}
}

// rollDeleting deletes old Pods, as many as may be unavailable. The next run that finds their
// nodes empty creates the new ones.
func (p *plan) rollDeleting(v *view, limits podlimits.Limits) {
	var unavailable []string // nodes
	var young, available []*pod
	for _, node := range v.rolloutNodes() {
		is := v.pairOn(node)
		switch {
		case is.now != nil && is.old == nil && v.isAvailable(is.now):
		case is.now == nil && is.old != nil && v.isAvailable(is.old):
			available = append(available, is.old)
		case is.now == nil && is.old != nil && is.old.ready:
			young = append(young, is.old)
		default:
			if is.now == nil && is.old != nil {
				p.delete(is.old, broken)
			}
			if v.blocks(node) {
				unavailable = append(unavailable, node)
			}
		}
	}
	budget := int(limits.Unavailable) - len(unavailable)
	p.deleteAll(upTo(budget, young), outdated)
	p.deleteAll(upTo(budget-len(young), available), outdated)
	if len(young)+len(available) > max(budget, 0) {
		p.rolloutWaits("maxUnavailable", limits.Unavailable, unavailable, young)
	}
}

// rollSurging creates new Pods beside old ones, as many as may be above the wanted number. keep
// deletes an old Pod once the new one is available.
func (p *plan) rollSurging(v *view, limits podlimits.Limits) {
	var surging, free, young, old []string // nodes
	var unwanted []*pod
	var available int32
	for _, node := range v.rolloutNodes() {
		is, runs := v.pairOn(node), v.byName[node].run
		if first := is.first(); !is.crowded && first != nil && v.isAvailable(first) {
			available++
		}
		switch {
		case is.crowded, is.old != nil && is.now != nil:
			if v.blocks(node) {
				surging = append(surging, node)
			}
		case is.old == nil:
		case !runs && v.isAvailable(is.old):
			unwanted = append(unwanted, is.old)
		case !runs:
			p.delete(is.old, broken)
		case v.isAvailable(is.old):
			old = append(old, node)
		case is.old.ready:
			young = append(young, node)
		default:
			free = append(free, node)
		}
	}
	// A Pod on a node that may keep it and no longer wants it serves until enough others do.
	p.deleteAll(upTo(int(available-limits.Desired), unwanted), outdated)
	candidates := append(young, old...)
	budget := int(limits.Surge) - len(surging)
	p.create = append(p.create, free...)
	p.create = append(p.create, upTo(budget, candidates)...)
	if len(candidates) > max(budget, 0) {
		p.rolloutWaits("maxSurge", limits.Surge, surging, nil)
	}
}

// pair are the Pods of a node that are not being deleted.
type pair struct {
	now, old *pod // of the revision, and of an older one
	// crowded reports that there are several of one sort. It is for keep to delete some of them.
	crowded bool
}

// first returns the Pod that serves until a rollout of the node is over.
func (is pair) first() *pod {
	if is.old != nil {
		return is.old
	}
	return is.now
}

func (v *view) pairOn(node string) (is pair) {
	for _, one := range v.pods[node] {
		switch {
		case one.deleting:
		case v.revision.has(one) && is.now == nil:
			is.now = one
		case !v.revision.has(one) && is.old == nil:
			is.old = one
		default:
			return pair{crowded: true}
		}
	}
	return is
}

// rolloutNodes returns the nodes that have Pods or want one, sorted.
func (v *view) rolloutNodes() []string {
	nodes := map[string]bool{}
	for node := range v.pods {
		nodes[node] = true
	}
	for _, at := range v.places {
		if at.run {
			nodes[at.name] = true
		}
	}
	return slices.Sorted(maps.Keys(nodes))
}

// clockSkew is how far the clock of a kubelet may be behind that of the API server.
const clockSkew = time.Minute

// blocks reports whether a node without an available Pod counts against the limits of a rollout.
// A node that was not ready before the revision existed does not: the rollout has not broken it,
// and would wait for it for ever. A node that gets unready later counts, because the template may
// be the cause: that of a network agent, say.
func (v *view) blocks(node string) bool {
	at, exists := v.byName[node]
	return !exists || at.unready.IsZero() || at.unready.After(v.revision.since.Add(-clockSkew))
}

// upTo returns the first n of a slice, or all, or none.
func upTo[T any](n int, all []T) []T { return all[:max(0, min(n, len(all)))] }
