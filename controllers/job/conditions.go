// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// find returns the condition of a type, or nil. It is part of the list.
func find(conditions []batchv1.JobCondition, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

// holds returns the condition of a type if it is true, and nil otherwise.
func holds(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	if c := find(job.Status.Conditions, kind); c != nil && c.Status == corev1.ConditionTrue {
		return c
	}
	return nil
}

// finished returns the condition that says how a Job ended, or nil.
func finished(job *batchv1.Job) *batchv1.JobCondition {
	if c := holds(job, batchv1.JobComplete); c != nil {
		return c
	}
	return holds(job, batchv1.JobFailed)
}

// set sets a condition, and reports whether it was another one before. A condition that would be
// false and does not exist is not added.
func set(status *batchv1.JobStatus, kind batchv1.JobConditionType, value corev1.ConditionStatus, reason, message string, now time.Time) bool {
	c := find(status.Conditions, kind)
	switch {
	case c == nil && value == corev1.ConditionFalse:
		return false
	case c == nil:
		status.Conditions = append(status.Conditions, batchv1.JobCondition{})
		c = &status.Conditions[len(status.Conditions)-1]
	case c.Status == value && c.Reason == reason && c.Message == message:
		return false
	}
	at := metav1.NewTime(now)
	*c = batchv1.JobCondition{Type: kind, Status: value, LastProbeTime: at, LastTransitionTime: at, Reason: reason, Message: message}
	return true
}
