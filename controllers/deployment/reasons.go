// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/runs"
)

// Codes of the reasons why a Deployment is not rolled out, or not further.
const (
	codePaused       = "RolloutPaused"
	codeUnsteady     = "ReplicaSetNotSteady"
	codeLeast        = "HeldByMaxUnavailable"
	codeMost         = "HeldByMaxSurge"
	codeOldPods      = "OldPodsNotEnded"
	codeTimedOut     = "ProgressDeadlineExceeded"
	codeNotAvailable = "PodsNotAvailable"
	codeNoPods       = "ReplicaSetCannotScale"
)

// reasons returns why the Deployment is not complete, for the plan that was made.
func (p *planner) reasons() (all []controller.Reason) {
	d, s := p.deployment, &p.plan.status
	if d.DeletionTimestamp != nil || p.plan.rollback != nil {
		return nil
	}
	add := func(code, text, ends string, until *appsv1.ReplicaSet, params ...any) {
		reason := controller.Reason{Code: code, Text: text, Params: controller.With(params...), Ends: ends}
		if until != nil {
			reason.Until = runs.Object{Group: "apps", Kind: "ReplicaSet", Namespace: until.Namespace, Name: until.Name, UID: until.UID}
		}
		all = append(all, reason)
	}
	if d.Spec.Paused {
		add(codePaused, "the rollout is paused", "spec.paused becomes false", nil)
	}
	if c := condition(s, appsv1.DeploymentProgressing); c != nil && c.Reason == reasonTimedOut {
		add(codeTimedOut, "the rollout has made no progress for {seconds} s (progressDeadlineSeconds)", "a Pod becomes available, or the Deployment changes", nil,
			"seconds", *d.Spec.ProgressDeadlineSeconds)
	}
	if c := failureOf(p.sets()); c != nil {
		add(codeNoPods, "a ReplicaSet of the Deployment cannot create or delete Pods ({reason})", "", p.current, "reason", c.Reason)
	}
	if d.Spec.Paused {
		return all
	}
	switch d.Spec.Strategy.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if p.oldPodsLeft() {
			add(codeOldPods, "Pods of an old template have not ended, and the strategy Recreate starts no new ones before that", "the old Pods are gone", nil)
		}
	case appsv1.RollingUpdateDeploymentStrategyType:
		p.heldBack(add)
	}
	if s.AvailableReplicas < p.Desired && p.current != nil {
		add(codeNotAvailable, "{available} of {desired} {desired?Pod is|Pods are} available", "", p.current, "available", s.AvailableReplicas, "desired", p.Desired)
	}
	return all
}

// heldBack adds why a rolling update takes no further step.
func (p *planner) heldBack(add func(code, text, ends string, until *appsv1.ReplicaSet, params ...any)) {
	old := total(active(p.old), p.planned)
	if p.current == nil || p.plan.create == nil && old == 0 && p.planned(p.current) == p.Desired {
		return
	}
	for _, set := range p.sets() {
		if set != p.plan.create && !steady(set) {
			add(codeUnsteady, "the ReplicaSet {set} has not reached its size, and the rollout takes no step before that", "", set, "set", set.Name)
			return
		}
	}
	if old > 0 {
		add(codeLeast, "{old} {old?Pod of an old ReplicaSet stays|Pods of old ReplicaSets stay}: {available} {available?Pod is|Pods are} available, and {least} must be (maxUnavailable)",
			"a Pod of the new ReplicaSet becomes available", nil, "old", old, "available", p.plan.status.AvailableReplicas, "least", p.Least())
	}
	if size := p.planned(p.current); size < p.Desired {
		add(codeMost, "the new ReplicaSet has {size} of {desired} {desired?Pod|Pods}: there may be {most} in all (maxSurge)",
			"a Pod of an old ReplicaSet is gone", nil, "size", size, "desired", p.Desired, "most", p.Most())
	}
}

// planned returns the size of a set after the plan.
func (p *planner) planned(set *appsv1.ReplicaSet) int32 {
	for _, c := range p.plan.changes {
		if c.set == set {
			return c.replicas
		}
	}
	return size(set)
}
