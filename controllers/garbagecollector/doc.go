// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package garbagecollector deletes objects whose owners are gone, and carries out
// foreground and orphan deletions.
//
// # What it watches and writes
//
// It asks the server which kinds it serves, at the start, every 30 s and whenever
// custom kinds or aggregated servers change, and watches the metadata of all that can
// be listed, watched and deleted, Events excepted. Kinds may come and go. What a
// discovery cannot find out, because an aggregated server is away, stays as it was. A
// kind that cannot be watched does not keep the others from being collected.
//
// It deletes objects, takes references and the finalizers foregroundDeletion and
// orphan out of them, and writes nothing else.
//
// # How it is built
//
//	informers ─▶ graph ─▶ work queue ─▶ workers ─▶ server
//	                ▲                      │
//	                └── owners not there ◀─┘
//
// The graph holds which object owns which. It is a data structure without IO: it takes
// changes, and returns the nodes that have to be looked at. Its keys are UIDs. An owner that
// dependents name and no informer has shown is a node too, and each way to name it
// (kind, name, the dependent's namespace) is a claim that the server is asked to
// confirm or refute.
//
// Looking at a node goes by the graph as it is then, not by the reason to look:
//
//   - An owner that nobody has seen: its claims are verified, again and again with
//     growing pauses for as long as one may be true. The object
//     that makes a refuted claim is looked at.
//   - An object that is not being deleted: its owners are solid (there), dangling (not
//     there) or waiting (deleted in the foreground). With a solid one, references to the
//     others are taken out of it. Without, and with at least one owner, it is deleted:
//     in the foreground if an owner waits and it has dependents itself, else as its
//     finalizers say, else in the background.
//   - One that waits for its dependents: when none is left whose reference has
//     blockOwnerDeletion, its finalizer goes. If it is in a circle of objects that wait
//     for one another, its references stop blocking.
//   - One whose dependents are to be orphaned: references to it are taken out of them,
//     and after that its finalizer goes.
//
// # What holds
//
//   - Nothing is deleted for a reason that is not certain. An owner is gone if its
//     deletion was seen or the server said so, and a UID never comes back. An owner
//     whose kind is not served now, or that waits no longer, counts as there. That a
//     list lacks an object is a reason to ask, no more.
//   - A deletion carries the UID, and the resourceVersion of what was decided upon. The
//     latter is left out only after a conflict, if the owners have not changed.
//   - An owner in another namespace counts as absent and is reported in an event,
//     OwnerRefInvalidNamespace. A cluster-scoped object that names an owner in a namespace
//     is reported and never deleted.
//   - Nothing is kept but in memory: a new process finds all that the last one left.
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
//     server is asked only about what the graph does not know: one request an object.
//   - Absent owners are remembered for as long as somebody names them; upstream
//     remembers the last 500.
//   - An owner is absent if the server looked for it and says so by its name. Upstream
//     takes any 404 for that, and so the answer of an older server beside a newer one that
//     it does not serve the owner's kind.
//   - Versions of a kind are one kind: a reference by a version that is no longer served
//     is one to the same object.
//   - Circles are found by walking from a node to those that wait for it. Upstream
//     guesses from a neighbour, and misses circles that several deletions close at once.
//   - A reference that names an owner wrongly does not delay its deletion, and neither does
//     an object that has an owner of an unknown kind: its reference to the one that waits is taken
//     out.
//   - At most 20 dependents are orphaned at a time for one owner; upstream has no bound.
package garbagecollector
