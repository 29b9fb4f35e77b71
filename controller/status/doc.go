// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status writes what a controller reports in the status of an object, and writes it only
// if it has changed: a write that changes nothing would still wake every watcher, the controller
// itself included.
//
//	now := o.DeepCopy()
//	now.Status.Replicas = replicas
//	status.SetCondition(&now.Status.Conditions, now.Generation, "Ready", metav1.ConditionTrue, "Serving", "2 of 2")
//	err := status.Write(ctx, informer, o, now)
package status
