// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package revisions keeps the history of an object as ControllerRevisions, as the controllers
// of StatefulSets and DaemonSets do.
//
// A ControllerRevision records what an object was at some time: its Pod template, say. A
// controller compares Pods with the newest one, and a user rolls back to an older one. The
// bytes of a revision, and its name, decide whether Pods are replaced. So they are those of
// kube-controller-manager, and a cluster can change between the two managers without a
// rollout.
//
// # One run of a controller
//
//	state, err := revisions.StatefulSet(set)                   // what to record
//	old, err := history.Claim(ctx, owner)                      // adopts and releases; sorted
//	now, err := history.Ensure(ctx, state, old, collisions)    // finds, renumbers or creates
//	for _, r := range revisions.Surplus(old, limit, inUse) {   // the oldest ones
//		err := history.Delete(ctx, r)
//	}
//
// [StatefulSet] and [DaemonSet] return the [State] that upstream records of these kinds. A
// controller of another kind fills in a State of its own.
//
// # Which revision is the newest
//
// [History.Ensure] returns the revision whose data equal those of the object. The newest one
// stays as it is. An older one gets the next number, which makes it the newest: a user has
// rolled back. If there is none, Ensure creates one.
//
// Kubernetes changes how it writes a template from one version to another. A StatefulSet's
// newest revision therefore also stays if it asks for the same Pods: its template is read,
// the API server's defaults are filled in, and the result is compared. Otherwise each
// StatefulSet would be rolled out after such an upgrade.
//
// # Names
//
// A name is a hash of the data, or of the template. Two revisions can have one hash. Then the
// collision count of the object, which its status keeps, is hashed too. Ensure returns the
// count for the status.
//
// # Where it differs from upstream
//
//   - A revision of the same data that another object controls counts as a collision. Upstream
//     takes it for its own, and loses it when the garbage collector deletes it.
//   - After a collision, the label that has the hash is that of the name. In a StatefulSet's
//     revision, upstream keeps the label of the first name. Nothing reads it.
//   - A collision of a DaemonSet's revision is resolved in the same run. Upstream writes the
//     count to the status first.
//   - The name of a DaemonSet is cut if the revision's name would be too long. Upstream fails.
//   - A StatefulSet's revision that the selector does not match is released, as a DaemonSet's
//     is. Upstream ignores it.
//   - A revision is renumbered by a patch and deleted by its UID.
//
// Sources: k8s.io/kubernetes v1.37, pkg/controller/history, pkg/controller/statefulset
// (getStatefulSetRevisions, truncateHistory, newRevision, ApplyRevision) and
// pkg/controller/daemon (constructHistory, cleanupHistory, snapshot). A test of the
// control-plane module compares data, names, hashes and equality with theirs.
package revisions
