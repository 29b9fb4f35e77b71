// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/podstate"
)

// The API server fills in the fields that these functions read. Their defaults here are the
// API's, so that an object without them does no harm.
// Source: k8s.io/kubernetes/pkg/apis/batch/v1, SetDefaults_Job.

// completions returns how many Pods are to succeed. A Job that names no number has none: see
// endsWithAny.
func completions(job *batchv1.Job) int32 {
	if job.Spec.Completions == nil {
		return 0
	}
	return *job.Spec.Completions
}

// endsWithAny reports whether a Job is complete when one Pod has succeeded and none runs.
func endsWithAny(job *batchv1.Job) bool { return job.Spec.Completions == nil }

// parallelism returns how many Pods run at a time.
func parallelism(job *batchv1.Job) int32 {
	if job.Spec.Parallelism == nil {
		return 1
	}
	return *job.Spec.Parallelism
}

// backoffLimit returns how many Pods may fail.
func backoffLimit(job *batchv1.Job) int32 {
	if job.Spec.BackoffLimit == nil {
		return 6
	}
	return *job.Spec.BackoffLimit
}

func suspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }

// replacesOnlyFailed reports whether a Pod is replaced only when it has ended. Otherwise a Pod
// that is being deleted has failed, and is replaced at once.
func replacesOnlyFailed(job *batchv1.Job) bool {
	return job.Spec.PodReplacementPolicy != nil && *job.Spec.PodReplacementPolicy == batchv1.Failed
}

// isOthers reports whether a controller of another name manages a Job. It has the whole Job: its
// status, and the finalizers of its Pods.
func isOthers(job *batchv1.Job) bool {
	return job.Spec.ManagedBy != nil && *job.Spec.ManagedBy != batchv1.JobControllerName
}

// knowsMode reports whether the completion mode is one that this version knows.
func knowsMode(job *batchv1.Job) bool {
	return job.Spec.CompletionMode == nil || *job.Spec.CompletionMode == batchv1.NonIndexedCompletion || indexed(job)
}

// tracked reports whether the end of a Pod is not counted yet: it has the finalizer.
func tracked(pod *corev1.Pod) bool {
	return slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer)
}

// hasFailed reports whether a Pod counts as one that failed. A Pod that is deleted, by hand or by
// the collector of a node that is gone, may never get the phase Failed.
func hasFailed(job *batchv1.Job, pod *corev1.Pod) bool {
	if podstate.Ended(pod) {
		return pod.Status.Phase == corev1.PodFailed
	}
	return pod.DeletionTimestamp != nil && !replacesOnlyFailed(job)
}
