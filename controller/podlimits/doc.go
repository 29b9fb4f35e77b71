// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podlimits computes how many Pods an owner may have, and how many it may lack,
// while its Pods are replaced or evicted.
//
// Four kinds of objects ask for this in their specs:
//
//	kind                 fields                                     rounding    at least
//	Deployment           maxSurge of the replicas                   up
//	                     maxUnavailable of the replicas             down        1 if maxSurge is 0
//	DaemonSet            maxSurge of the nodes                      up
//	                     maxUnavailable of the nodes                up          1 if maxSurge is 0
//	StatefulSet          maxUnavailable of the replicas             down        1
//	PodDisruptionBudget  maxUnavailable or minAvailable of scales   up
//
// Each field holds a number of Pods or a percentage. Rounding can turn a small percentage
// into 0. A rollout that may neither add nor remove a Pod would never end, so one Pod may be
// unavailable then.
//
// [Deployment], [DaemonSet] and [StatefulSet] return [Limits]. [PodDisruptionBudget] returns a
// [Budget]. All of them are pure functions: they change nothing and are safe for concurrent
// use.
//
// # Values
//
// A number counts from 0, and a percentage is a number from 0 and a percent sign. The API
// server refuses most other values. It accepts a percentage that is too long for an integer.
// For such a value the functions return an error that names the field and says what to
// write. A field that is not set counts as 0. The API server fills in the defaults.
//
// Results that do not fit into an int32 are the largest int32.
//
// # Sources
//
// Rounding and the least values are those of k8s.io/kubernetes v1.37:
// pkg/controller/deployment/util (ResolveFenceposts, MaxUnavailable, MaxSurge),
// pkg/controller/daemon (updatedDesiredNodeCounts), pkg/controller/statefulset
// (getStatefulSetMaxUnavailable) and pkg/controller/disruption (getExpectedPodCount,
// updatePdbStatus). A test of the control-plane module compares the results with theirs.
package podlimits
