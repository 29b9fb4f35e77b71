// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ttlafterfinished deletes Jobs some time after they have finished.
//
// A Job that has spec.ttlSecondsAfterFinished is deleted, with its Pods, that long after
// it completed or failed. 0 is at once. A Job without it stays.
//
// # What it watches and writes
//
// It watches Jobs, and deletes them: in the foreground, so that the Job stays until its
// Pods are gone, and with its UID.
//
// # What holds
//
//   - The Job is read from the server once more before it is deleted, because people
//     extend the time of a Job that they want to keep. A Job whose TTL is longer than in
//     the cache is reconciled again when its new time has come.
//   - A Job is not deleted while one of its times is unknown, or twice.
//   - Time is the local clock's against the server's: a Job with a finish time in the future
//     is kept for as much longer, and that is said in the log.
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/ttlafterfinished).
package ttlafterfinished
