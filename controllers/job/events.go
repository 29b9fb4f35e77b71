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
	// reasonRestarts is ours. It says what a Pod that the backoff limit deletes has died of.
	reasonRestarts = "ContainerRestarts"
)

// actionReconcile is the action of the Events that are decided on in a run. Those about single Pods
// are of podwriter.
const actionReconcile = "Reconcile"
