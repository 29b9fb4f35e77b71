// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package owned manages the objects that one object owns: the Pods of a ReplicaSet, the
// ConfigMaps of a custom object.
//
//   - [By] makes the owner reference that marks an object as managed.
//   - [Claim] finds the objects of an owner by its selector. It adopts and releases objects.
//   - [Applier] brings objects to their desired state by server-side apply.
//   - [SlowStart] creates many objects, and stops early if creating them does not work.
//   - [Surplus] chooses the objects to delete, by ranks. Package podrank has the rank that
//     ReplicaSets use for Pods.
//
// Nothing here needs a controller: the functions work on the informers and clients that the
// caller passes.
package owned
