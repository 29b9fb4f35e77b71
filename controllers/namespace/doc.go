// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespace empties namespaces that are being deleted, and lets them go.
//
// The server marks a deleted namespace as terminating and refuses new objects in it. This
// controller deletes what is in it already. The namespace stays until the controller has
// removed the finalizer "kubernetes" from its spec.
//
// # What it watches and writes
//
// Its keys are namespaces. It reconciles a namespace from the beginning of its deletion
// until it is gone. It deletes objects of every kind that the server serves in
// namespaces, custom ones included, by the server's discovery at that moment. It writes
// the conditions of the namespace and, last, takes away the finalizer through the
// subresource finalize. A namespace that is not being deleted it never touches.
//
// # The order
//
//	Pods ─▶ none left, and the settling time is over ─▶ all other kinds at once ─▶ finalize
//
// Pods go first and everything else waits for them: what protects them, a NetworkPolicy
// say, must not go while they run. The settling time, 5 s, is how long another API server
// may take to learn that the namespace terminates and still let something in. Pods are
// deleted during it; the controller checks again when it is over that none is left.
//
// # What holds
//
//   - The namespace is finalized only after each kind was found empty, in one run in
//     which nothing failed. A kind of which the server says nothing, because its
//     aggregated server is away, keeps the namespace, and keeps nothing else back.
//   - Before anything is deleted the controller reads the namespace itself from the
//     server: one that was created again under the name is left alone.
//   - What remains, and why, stands in the five conditions, in the words of
//     kube-controller-manager: types, reasons and messages.
//   - Objects that wait for their finalizers are counted and not deleted again.
//   - A process that ends in the middle loses nothing: what is left is found again.
//
// # Waiting
//
// No run waits. Where objects are left, a run ends with a time for the next one: half of
// what the longest grace period or, where finalizers are left, 15 s give, and one second.
// Meanwhile the last objects of a few kinds are watched, and the next run comes at once
// when they are gone.
//
// # Where it differs from upstream, on purpose
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/namespace), but:
//
//   - Kinds are emptied beside each other, 16 at a time for all namespaces together;
//     upstream goes through them one by one. A kind without objects costs one request
//     instead of two. Events, which are served in two groups, are deleted once.
//   - Pods are deleted at once; upstream begins nothing before the settling time.
//   - The next run comes when the last object went. Upstream looks again after the
//     time above: 16 s for Pods of the usual grace period.
//   - That Pods are left is said in the conditions; upstream says that all content was
//     removed while it waits for them.
//   - That Pods cannot be deleted keeps the other kinds back too. Upstream also continues
//     with them if the request for all Pods failed.
//   - A namespace without the finalizer "kubernetes" is done with, also if it has others.
//   - Conditions that would say nothing but that all went well, of a namespace that goes
//     with the next request, are not written.
package namespace
