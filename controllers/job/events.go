// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

// Reasons of Events. Those of the ends of a Job are the reasons of its conditions.
// Source: k8s.io/kubernetes/pkg/controller/job.
const (
	reasonCompleted        = "Completed"
	reasonResumed          = "Resumed"
	reasonSuspended        = "Suspended"
	reasonTooManySucceeded = "TooManySucceededPods"
	reasonUnknownMode      = "UnknownCompletionMode"
	reasonWorkloadCreated  = "WorkloadCreated"
	reasonWorkloadFailed   = "FailedWorkloadCreate"
	reasonPodGroupCreated  = "PodGroupCreated"
	// reasonPodGroupFailed is ours. Upstream records nothing about a PodGroup that cannot be made.
	reasonPodGroupFailed = "FailedPodGroupCreate"
	// reasonRestarts is ours. It says what a Pod that the backoff limit deletes has died of.
	reasonRestarts = "ContainerRestarts"
	// reasonUnreadable is ours. Upstream writes into its log that an annotation has no number.
	reasonUnreadable = "UnreadableAnnotation"
)

// actionCreate is the action of the Events about Workloads and PodGroups.
const actionCreate = "Create"

// actionReconcile is the action of the Events that are decided on in a run. Those about single Pods
// are of podwriter.
const actionReconcile = "Reconcile"
