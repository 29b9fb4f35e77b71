// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Each reason has its code and its sentence, and a Deployment that is as it should be has none.
func TestReasons(t *testing.T) {
	paused := rollingTo(deployment(4), 2)
	paused.Spec.Paused = true
	late := rollingTo(deployment(4), 2)
	setCondition(&late.Status, newCondition(began, appsv1.DeploymentProgressing, corev1.ConditionFalse, reasonTimedOut, ""))
	late.Status.Replicas, late.Status.UpdatedReplicas, late.Status.ReadyReplicas, late.Status.AvailableReplicas = 4, 4, 3, 3
	failing := func(s *appsv1.ReplicaSet) {
		s.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate"}}
	}
	for _, c := range []struct {
		name string
		d    *appsv1.Deployment
		sets func(*appsv1.Deployment) []*appsv1.ReplicaSet
		want []string
	}{
		{"complete", rollingTo(deployment(4), 2), func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
			return []*appsv1.ReplicaSet{set(d, 1, 0), set(d, 2, 4)}
		}, nil},
		{"held by both limits", rollingTo(deployment(20), 2), func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
			return []*appsv1.ReplicaSet{set(d, 1, 15), set(d, 2, 10, working(0))}
		}, []string{
			"HeldByMaxUnavailable: 15 Pods of old ReplicaSets stay: 15 Pods are available, and 15 must be (maxUnavailable) (until a Pod of the new ReplicaSet becomes available)",
			"HeldByMaxSurge: the new ReplicaSet has 10 of 20 Pods: there may be 25 in all (maxSurge) (until a Pod of an old ReplicaSet is gone)",
			"PodsNotAvailable: 15 of 20 Pods are available (until ReplicaSet.apps team-a/web-5955c6c578 changes)",
		}},
		{"a set that is not steady", rollingTo(deployment(4), 2), func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
			return []*appsv1.ReplicaSet{set(d, 1, 3, func(s *appsv1.ReplicaSet) { s.Status.Replicas++ }), set(d, 2, 2)}
		}, []string{"ReplicaSetNotSteady: the ReplicaSet web-6c7874fc5f has not reached its size, and the rollout takes no step before that (until ReplicaSet.apps team-a/web-6c7874fc5f changes)"}},
		{"paused", paused, func(d *appsv1.Deployment) []*appsv1.ReplicaSet { return []*appsv1.ReplicaSet{set(d, 1, 4)} },
			[]string{"RolloutPaused: the rollout is paused (until spec.paused becomes false)"}},
		{"without progress", late, func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
			return []*appsv1.ReplicaSet{set(d, 2, 4, working(3))}
		}, []string{
			"ProgressDeadlineExceeded: the rollout has made no progress for 600 s (progressDeadlineSeconds) (until a Pod becomes available, or the Deployment changes)",
			"PodsNotAvailable: 3 of 4 Pods are available (until ReplicaSet.apps team-a/web-5955c6c578 changes)",
		}},
		{"a set without Pods", rollingTo(deployment(4), 2), func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
			return []*appsv1.ReplicaSet{set(d, 2, 4, failing)}
		}, []string{"ReplicaSetCannotScale: a ReplicaSet of the Deployment cannot create or delete Pods (FailedCreate) (until ReplicaSet.apps team-a/web-5955c6c578 changes)"}},
		{"Recreate, with old Pods", rollingTo(recreating(4), 2), func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
			return []*appsv1.ReplicaSet{set(d, 1, 0, func(s *appsv1.ReplicaSet) { s.Status.Replicas = 1 })}
		}, []string{"OldPodsNotEnded: Pods of an old template have not ended, and the strategy Recreate starts no new ones before that (until the old Pods are gone)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, r := range decidedAt(t, began.Add(time.Hour), c.d, c.sets(c.d)...).reasons {
				got = append(got, r.Code+": "+r.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("the reasons are\n%q, want\n%q", got, c.want)
			}
		})
	}
}
