// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package garbagecollector deletes objects whose owners are gone, and carries out
// foreground and orphan deletions.
//
// # What it watches and writes
//
// It discovers which kinds the server serves, at the start, every 30 s and whenever
// custom kinds or aggregated servers change. It watches the metadata of all kinds that
// can be listed, watched and deleted, except Events. Kinds may appear and disappear. The
// kinds of an aggregated server that does not answer stay as they were. A kind that
// cannot be watched does not keep the others from being collected.
//
// It deletes objects, removes owner references and the finalizers foregroundDeletion and
// orphan from them, and writes nothing else.
//
// # How it is built
//
//	informers ─▶ graph ─▶ work queue ─▶ workers ─▶ server
//	                ▲                      │
//	                └── owners not there ◀─┘
//
// The graph holds which object owns which. It is a data structure without IO: it takes
// changes, and returns the nodes to reconcile. Its keys are UIDs. An owner that dependents
// name and no informer has shown is a node too, and each way to name it (kind, name, the
// dependent's namespace) is a claim. A read from the server confirms or refutes the claim.
//
// A reconcile of a node reads the graph as it is then, whatever enqueued the node:
//
//   - An owner that no informer has shown: its claims are verified, again and again with
//     growing pauses for as long as one may be true. The object that makes a refuted
//     claim is reconciled.
//   - An object that is not being deleted: its owners are solid (they exist), dangling
//     (they do not exist) or waiting (they are deleted in the foreground). If one is
//     solid, references to the others are removed from the object. If none is solid, and
//     there is at least one owner, the object is deleted: in the foreground if an owner
//     waits and the object has dependents itself, else as its finalizers say, else in the
//     background.
//   - An object that waits for its dependents: when none is left whose reference has
//     blockOwnerDeletion, its finalizer is removed. If it is in a circle of objects that
//     wait for one another, its references stop blocking.
//   - An object whose dependents are to be orphaned: references to it are removed from
//     them, and after that its finalizer is removed.
//
// # What holds
//
//   - Nothing is deleted for a reason that is not certain. An owner is gone if its
//     deletion was observed or the server answered so, and a UID never comes back. An
//     owner whose kind is not served now, or that no longer waits, counts as existing. If
//     a list lacks an object, the collector reads the object from the server.
//   - A deletion carries the UID and the resourceVersion of the object that was decided
//     upon. The resourceVersion is left out only after a conflict, if the owners have not
//     changed.
//   - An owner in another namespace counts as absent and is reported in an event,
//     OwnerRefInvalidNamespace. A cluster-scoped object that names an owner in a namespace
//     is reported and never deleted.
//   - All state is in memory: a new process finds all that the last one left.
//
// Tests hold the graph against a naive model, and the collector against a simulated
// server with informers that lag, requests that fail and restarts.
//
// # Where it differs from upstream on purpose
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/garbagecollector).
//
//   - Upstream reads each object, and each owner that it does not remember as absent,
//     before each deletion. Here the resourceVersion in the deletion does that, and the
//     collector reads from the server only what the graph does not know: one request an
//     object.
//   - Absent owners are remembered for as long as a dependent names them; upstream
//     remembers the last 500.
//   - An owner is absent if the server looked for it and answers with its name. For
//     upstream any 404 is enough, such as that of an older server beside a newer one,
//     which does not serve the owner's kind.
//   - Versions of a kind are one kind: a reference by a version that is no longer served
//     is one to the same object.
//   - Circles are found by walking from a node to those that wait for it. Upstream
//     guesses from a neighbour, and misses circles that several deletions close at once.
//   - A reference that names an owner wrongly does not delay its deletion, and neither does an
//     object that has an owner of an unknown kind: its reference to the owner that waits is
//     removed.
//   - At most 20 dependents are orphaned at a time for one owner; upstream has no bound.
package garbagecollector
