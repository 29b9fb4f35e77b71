// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/podlimits"
)

// roll plans the deletion of Pods of other revisions, from the highest ordinal down. They are
// created again from the new revision.
func (p *planner) roll() {
	if p.set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType {
		p.keptOnDelete()
		return
	}
	limits, err := podlimits.StatefulSet(p.set)
	if err != nil {
		p.failure = controller.Terminal(err)
		return
	}
	missing := p.countUnavailable()
	p.unavailable = &missing
	switch {
	case p.options.IgnoreMaxUnavailable:
		p.rollOne()
	case p.ordered:
		p.rollHighest(int(limits.Unavailable) - missing)
	default:
		p.rollBroken()
		p.rollHighest(int(limits.Unavailable) - missing)
	}
	p.keptByRollout(int(limits.Unavailable))
}

// countUnavailable counts the wanted Pods that are not available, those that do not exist among them.
// A Pod that is planned to go counts only if it was not available before.
//
// Source: k8s.io/kubernetes/pkg/controller/statefulset,
// updateStatefulSetAfterInvariantEstablished.
func (p *planner) countUnavailable() int {
	n := size(p.set) - len(p.replicas)
	for _, pod := range p.replicas {
		if p.isUnavailable(pod) {
			n++
		}
	}
	return n
}

func (p *planner) isUnavailable(pod *corev1.Pod) bool {
	return terminating(pod) || !available(p.set, pod, p.now)
}

// rollBroken plans the deletion of Pods that are not available and have another revision. It costs
// no available Pod, so it has no limit. One that becomes available before the delete is kept: it
// would be one too many. It is for Parallel: with OrderedReady, a rollout waits until all Pods are
// available.
func (p *planner) rollBroken() {
	for _, pod := range slices.Backward(p.replicas) {
		if p.isOld(pod) && p.isUnavailable(pod) {
			p.broken = append(p.broken, pod)
		}
	}
}

// rollHighest plans the deletion of as many available Pods as may become unavailable.
func (p *planner) rollHighest(budget int) {
	for _, pod := range slices.Backward(p.replicas) {
		if budget <= 0 {
			return
		}
		if p.isOld(pod) && !p.isUnavailable(pod) {
			p.delete = append(p.delete, pod)
			budget--
		}
	}
}

// rollOne plans the deletion of one Pod: the highest one that is not of the new revision, if all
// Pods above it are available. maxUnavailable is ignored.
func (p *planner) rollOne() {
	last := start(p.set) + size(p.set)
	for _, pod := range slices.Backward(p.replicas) {
		last--
		switch {
		case ordinalOf(pod) != last: // one above it does not exist
			return
		case p.isOld(pod):
			p.delete = append(p.delete, pod)
			return
		case p.isUnavailable(pod):
			return
		}
	}
}

// isOld reports whether a rollout has to replace a Pod.
func (p *planner) isOld(pod *corev1.Pod) bool {
	return ordinalOf(pod) >= p.partition && revisionOf(pod) != p.update.name && !terminating(pod) && !slices.Contains(p.restart, pod)
}

// replaceNeverReady plans the deletion of a Pod for which the order waits, if that Pod was never
// ready and the rollout would replace it. The package's documentation has the rule. It reports
// whether the Pod is deleted, or will be.
func (p *planner) replaceNeverReady(pod *corev1.Pod) bool {
	if p.set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType || !p.isOld(pod) || !neverReady(pod) {
		return false
	}
	if missing := p.missingMember(); missing != nil {
		p.waitsFor(missing, "has been ready and is not available, so the rollout does not replace "+pod.Name+", which has never been ready")
		return true
	}
	if ordinal := p.gap(); ordinal >= 0 {
		p.waitsForGap(pod, podName(p.set.Name, ordinal))
		return true
	}
	if left := hopelessIn(pod, p.now); left > 0 {
		p.firstStarts(pod, left)
		p.wake(left)
		return true
	}
	p.broken, p.neverReady = append(p.broken, pod), pod
	return true
}

// missingMember returns a Pod that was ready and is not available now.
func (p *planner) missingMember() *corev1.Pod {
	for _, pod := range p.pods {
		if p.isUnavailable(pod) && !neverReady(pod) {
			return pod
		}
	}
	return nil
}

// gap returns the lowest ordinal that has no Pod and is below one that has, or -1. Its Pod was
// ready once: with OrderedReady, a Pod is created only while all Pods below it are available.
func (p *planner) gap() int {
	next := start(p.set)
	for _, pod := range p.replicas {
		if ordinalOf(pod) != next {
			return next
		}
		next++
	}
	return -1
}

// recreate takes the first two steps of the strategy Recreate: it deletes all Pods of other
// revisions, and waits until they are gone. It reports whether the rest has to wait.
//
// Source: k8s.io/kubernetes/pkg/controller/statefulset, recreateDeleteAndWait.
func (p *planner) recreate() (wait bool) {
	for _, pod := range p.pods {
		if revisionOf(pod) == p.update.name {
			continue
		}
		wait = true
		if !terminating(pod) {
			p.delete = append(p.delete, pod)
		}
	}
	switch {
	case wait:
		setCondition(&p.status, corev1.ConditionTrue, recreateInProgress, "Deleting old revision pods", p.now)
		p.because(codeOldPods, "Pods of an old template have not ended, and the strategy Recreate creates no new ones before that", "the old Pods are gone")
	case p.current.name != p.update.name:
		setCondition(&p.status, corev1.ConditionTrue, recreateInProgress, "Waiting for new-revision pods to be created", p.now)
	}
	return wait
}

// unknownStrategy refuses the strategy Recreate, whose gate is off.
func (p *planner) unknownStrategy() {
	err := fmt.Errorf("statefulset %s/%s uses Recreate strategy but feature gate StatefulSetRecreateStrategy is disabled", p.set.Namespace, p.set.Name)
	p.events.Warning(unknownStrategy, deciding, "%v", err)
	p.failure = controller.Terminal(err)
	p.refused = true
}
