// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newStatus returns the status that an owner of a generation should have.
func newStatus(old appsv1.ReplicaSetStatus, generation int64, s state) appsv1.ReplicaSetStatus {
	return appsv1.ReplicaSetStatus{
		Replicas:             int32(s.counts.replicas),
		FullyLabeledReplicas: int32(s.counts.fullyLabeled),
		ReadyReplicas:        int32(s.counts.ready),
		AvailableReplicas:    int32(s.counts.available),
		TerminatingReplicas:  new(int32(s.counts.terminating)),
		ObservedGeneration:   generation,
		Conditions:           failureCondition(old.Conditions, s.failure, s.at),
	}
}

// failureCondition returns the conditions with or without ReplicaFailure. A condition
// that stands keeps its first reason, as upstream has it.
func failureCondition(old []appsv1.ReplicaSetCondition, f *failure, at time.Time) []appsv1.ReplicaSetCondition {
	var others []appsv1.ReplicaSetCondition
	for _, c := range old {
		if c.Type != appsv1.ReplicaSetReplicaFailure {
			others = append(others, c)
		}
	}
	if stands := len(others) < len(old); stands == (f != nil) {
		return old
	}
	if f == nil {
		return others
	}
	return append(others, appsv1.ReplicaSetCondition{
		Type:               appsv1.ReplicaSetReplicaFailure,
		Status:             corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(at),
		Reason:             f.reason,
		Message:            f.cause.Error(),
	})
}
