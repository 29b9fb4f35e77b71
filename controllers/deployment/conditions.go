// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of conditions. Users and kubectl know them.
// Source: k8s.io/kubernetes/pkg/controller/deployment/util.
const (
	reasonCreated     = "NewReplicaSetCreated"
	reasonNotCreated  = "ReplicaSetCreateError"
	reasonFound       = "FoundNewReplicaSet"
	reasonUpdated     = "ReplicaSetUpdated"
	reasonComplete    = "NewReplicaSetAvailable"
	reasonTimedOut    = "ProgressDeadlineExceeded"
	reasonPaused      = "DeploymentPaused"
	reasonResumed     = "DeploymentResumed"
	reasonAvailable   = "MinimumReplicasAvailable"
	reasonUnavailable = "MinimumReplicasUnavailable"
)

// condition returns the condition of a type, or nil. The result points into the
// status.
func condition(s *appsv1.DeploymentStatus, t appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

// newCondition returns a condition that begins now.
func newCondition(now time.Time, t appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{
		Type: t, Status: status, Reason: reason, Message: message,
		LastUpdateTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
	}
}

// setCondition puts a condition in the place of the one of its type. One with the
// same status and reason stays as it is, message and times included; with the same
// status, the time of the transition stays.
func setCondition(s *appsv1.DeploymentStatus, c appsv1.DeploymentCondition) {
	if before := condition(s, c.Type); before != nil && before.Status == c.Status {
		if before.Reason == c.Reason {
			return
		}
		c.LastTransitionTime = before.LastTransitionTime
	}
	removeCondition(s, c.Type)
	s.Conditions = append(s.Conditions, c)
}

// renewCondition is setCondition for something that has happened once more: the
// time of the update moves although status and reason are the same.
func renewCondition(s *appsv1.DeploymentStatus, c appsv1.DeploymentCondition) {
	if before := condition(s, c.Type); before != nil && before.Status == c.Status {
		c.LastTransitionTime = before.LastTransitionTime
	}
	removeCondition(s, c.Type)
	s.Conditions = append(s.Conditions, c)
}

func removeCondition(s *appsv1.DeploymentStatus, t appsv1.DeploymentConditionType) {
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == t })
}

// failureOf returns what a set says about Pods that cannot be created or deleted,
// the current set first, or nil.
func failureOf(sets []*appsv1.ReplicaSet) *appsv1.DeploymentCondition {
	for _, set := range sets {
		for _, c := range set.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure {
				return &appsv1.DeploymentCondition{
					Type: appsv1.DeploymentReplicaFailure, Status: c.Status, Reason: c.Reason, Message: c.Message,
					LastUpdateTime: c.LastTransitionTime, LastTransitionTime: c.LastTransitionTime,
				}
			}
		}
	}
	return nil
}
