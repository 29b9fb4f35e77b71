// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controller/events"
)

// count fills the status from what the sets say, and the Available condition.
// Other conditions stay as they are.
func (p *planner) count() {
	sets := p.sets()
	s := &p.plan.status
	s.ObservedGeneration = p.deployment.Generation
	s.Replicas = total(sets, func(set *appsv1.ReplicaSet) int32 { return set.Status.Replicas })
	s.ReadyReplicas = total(sets, func(set *appsv1.ReplicaSet) int32 { return set.Status.ReadyReplicas })
	s.AvailableReplicas = total(sets, func(set *appsv1.ReplicaSet) int32 { return set.Status.AvailableReplicas })
	s.UnavailableReplicas = max(0, total(sets, size)-s.AvailableReplicas)
	s.UpdatedReplicas = 0
	if p.current != nil {
		s.UpdatedReplicas = p.current.Status.Replicas
	}
	s.TerminatingReplicas = terminating(sets)

	available, reason, message := corev1.ConditionTrue, reasonAvailable, "Deployment has minimum availability."
	if s.AvailableReplicas < p.Least() {
		available, reason, message = corev1.ConditionFalse, reasonUnavailable, "Deployment does not have minimum availability."
	}
	setCondition(s, newCondition(p.now, appsv1.DeploymentAvailable, available, reason, message))
}

// terminating adds up the Pods that are being deleted. It is unknown, and nil, where the
// controller of a set does not count them; sets that no controller has observed yet have
// none.
func terminating(sets []*appsv1.ReplicaSet) *int32 {
	var sum int32
	for _, set := range sets {
		switch n := set.Status.TerminatingReplicas; {
		case n != nil:
			sum += *n
		case set.Status.ObservedGeneration > 0:
			return nil
		}
	}
	return &sum
}

// complete reports whether, by a status, all Pods are of the current template and
// available, and their number is the wanted one.
func complete(d *appsv1.Deployment, s *appsv1.DeploymentStatus) bool {
	want := value(d.Spec.Replicas)
	return s.UpdatedReplicas == want && s.Replicas == want && s.AvailableReplicas == want && s.ObservedGeneration >= d.Generation
}

// advanced reports whether a rollout has moved between two statuses: Pods of the
// current template came, old ones went, or more are ready or available.
func advanced(before, now *appsv1.DeploymentStatus) bool {
	return now.UpdatedReplicas > before.UpdatedReplicas ||
		now.Replicas-now.UpdatedReplicas < before.Replicas-before.UpdatedReplicas ||
		now.ReadyReplicas > before.ReadyReplicas ||
		now.AvailableReplicas > before.AvailableReplicas
}

// progress brings the conditions Progressing and ReplicaFailure up to date. It
// follows count.
func (p *planner) progress() {
	s := &p.plan.status
	if hasDeadline(p.deployment) {
		p.judge(s)
	} else {
		removeCondition(s, appsv1.DeploymentProgressing)
	}
	if failure := failureOf(p.sets()); failure != nil {
		setCondition(s, *failure)
	} else {
		removeCondition(s, appsv1.DeploymentReplicaFailure)
	}
}

// judge says how the rollout goes.
func (p *planner) judge(s *appsv1.DeploymentStatus) {
	known := condition(s, appsv1.DeploymentProgressing)
	if known != nil && known.Reason == reasonComplete && s.Replicas == s.UpdatedReplicas {
		return // it is over; a Pod that fails later is no part of it
	}
	what := fmt.Sprintf("Deployment %q", p.deployment.Name)
	if p.current != nil {
		what = fmt.Sprintf("ReplicaSet %q", p.current.Name)
	}
	progressing := func(status corev1.ConditionStatus, reason, text string) appsv1.DeploymentCondition {
		return newCondition(p.now, appsv1.DeploymentProgressing, status, reason, what+text)
	}
	switch {
	case complete(p.deployment, s):
		setCondition(s, progressing(corev1.ConditionTrue, reasonComplete, " has successfully progressed."))
	case advanced(&p.deployment.Status, s):
		renewCondition(s, progressing(corev1.ConditionTrue, reasonUpdated, " is progressing."))
	case known != nil && known.Reason != reasonComplete && known.LastUpdateTime.Add(p.deadline()).Before(p.now):
		setCondition(s, progressing(corev1.ConditionFalse, reasonTimedOut, " has timed out progressing."))
	}
}

// pauseOrResume notes a pause and its end, so that the time of the pause does not
// count as time without progress. A rollout that has failed stays failed.
func (p *planner) pauseOrResume() {
	known := condition(&p.plan.status, appsv1.DeploymentProgressing)
	if !hasDeadline(p.deployment) || known != nil && known.Reason == reasonTimedOut {
		return
	}
	noted := known != nil && known.Reason == reasonPaused
	switch paused := p.deployment.Spec.Paused; {
	case paused && !noted:
		p.progressing(corev1.ConditionUnknown, reasonPaused, "Deployment is paused")
	case !paused && noted:
		p.progressing(corev1.ConditionUnknown, reasonResumed, "Deployment is resumed")
	}
}

// progressing sets the Progressing condition of a Deployment that has a deadline.
func (p *planner) progressing(status corev1.ConditionStatus, reason, message string) {
	if hasDeadline(p.deployment) {
		setCondition(&p.plan.status, newCondition(p.now, appsv1.DeploymentProgressing, status, reason, message))
	}
}

// hasDeadline reports whether progress is judged. The largest number is "never".
func hasDeadline(d *appsv1.Deployment) bool {
	seconds := d.Spec.ProgressDeadlineSeconds
	return seconds != nil && *seconds != math.MaxInt32
}

func (p *planner) deadline() time.Duration {
	return time.Duration(*p.deployment.Spec.ProgressDeadlineSeconds) * time.Second
}

// untilDeadline returns when to look again whether the rollout has timed out, or
// 0 where that cannot happen.
func (p *planner) untilDeadline() time.Duration {
	s := &p.plan.status
	known := condition(s, appsv1.DeploymentProgressing)
	if !hasDeadline(p.deployment) || p.deployment.Spec.Paused || known == nil || known.Reason == reasonTimedOut ||
		known.Reason == reasonComplete || complete(p.deployment, s) {
		return 0
	}
	// The times of conditions are whole seconds.
	return max(0, known.LastUpdateTime.Add(p.deadline()).Sub(p.now)) + time.Second
}

// notCreated is the condition that the current set could not be created.
func notCreated(name string, err error) events.Planned {
	return events.Planned{
		Warning: true, Reason: reasonNotCreated, Action: actionReconcile,
		Note: fmt.Sprintf("Failed to create new replica set %q: %v", name, err),
	}
}

// withoutCreation returns a planned status as it is after the creation that was
// planned has failed. It is the same for each try, so that a failure that lasts is
// written once.
func withoutCreation(d *appsv1.Deployment, planned appsv1.DeploymentStatus, failure events.Planned, now time.Time) appsv1.DeploymentStatus {
	s := *planned.DeepCopy()
	if !hasDeadline(d) {
		return s
	}
	removeCondition(&s, appsv1.DeploymentProgressing)
	if before := condition(&d.Status, appsv1.DeploymentProgressing); before != nil {
		s.Conditions = append(s.Conditions, *before)
	}
	setCondition(&s, newCondition(now, appsv1.DeploymentProgressing, corev1.ConditionFalse, failure.Reason, failure.Note))
	return s
}
