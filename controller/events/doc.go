// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package events records Events about the objects of a cluster: what a controller did, and why it
// did nothing, for users who run kubectl describe.
//
// A controller gets its [Recorder] from its host:
//
//	recorder := host.Recorder("replicaset-controller")
//	recorder.Normal(set, "SuccessfulCreate", "Create", "created Pod %s", pod.Name)
//
// A controller that decides in a pure function returns the Events of its decision as a [List], and
// records them when it carries out the decision:
//
//	var planned events.List
//	planned.Warning("SelectingAll", "Reconcile", "the selector is empty")
//	recorder.Record(deployment, planned...)
//
// The manager runs the recorder. A program without a manager makes one with [NewRecorder], and
// runs it.
package events
