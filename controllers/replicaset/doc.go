// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replicaset keeps the number of Pods that each ReplicaSet wants.
//
// It watches ReplicaSets and Pods. It creates and deletes Pods, adopts and releases
// them, and writes the status of ReplicaSets: replicas, fullyLabeledReplicas,
// readyReplicas, availableReplicas, terminatingReplicas, observedGeneration, and the
// condition ReplicaFailure while Pods cannot be made or deleted. Its Events are
// SuccessfulCreate, FailedCreate, SuccessfulDelete and FailedDelete.
//
// # What holds
//
//   - The controller never creates more Pods than the ReplicaSet, as last observed,
//     wants: not while a cache lags, not after an answer was lost, not after a restart.
//   - A Pod that has failed, has succeeded or is being deleted does not count, and
//     is replaced.
//   - A ReplicaSet that is being deleted is not scaled, adopts nothing and releases
//     nothing. Its status is kept.
//   - A Pod is deleted by its UID, never by its name alone.
//   - A status that has not changed is not written.
//
// How that is done, what exactly holds and where it differs from upstream is in the
// package internal/replicas, whose loop this is. Here is only how a ReplicaSet is
// written down.
package replicaset
