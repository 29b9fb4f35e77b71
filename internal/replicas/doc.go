// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replicas keeps the number of Pods that an owner wants. It is what the
// controllers of ReplicaSets and of ReplicationControllers have in common: all except the
// form of the two kinds. A [Kind] says that.
//
// # What it watches and writes
//
// Its keys are the owners. It reconciles an owner when the owner changes, when a Pod of
// it appears, goes, or changes in a way that matters here, and when a Pod without a
// manager comes to match its selector. It creates and deletes Pods, adopts and releases
// them, and writes the status of owners.
//
// # The way of a run
//
//	claim ─▶ plan ─▶ create, or rank and delete ─▶ count ─▶ status
//
// In words:
//
//   - claim (claim.go) finds the active Pods of the owner: the ones it manages and those
//     without a manager that match its selector, which it adopts after it has read the
//     owner from the server.
//   - plan (scale.go) says how many to make or to delete, at most 500 a run.
//     Package controller/podwriter creates and deletes them. Which Pods are deleted
//     is decided by controller/podrank.
//   - count (count.go) counts the Pods as they are after this run, and status (status.go)
//     makes a ReplicaSet's status of the counts.
//
// Plan, rank, count and status are functions of plain values.
//
// # What holds
//
//   - The controller never creates more Pods than the owner, as last observed, wants: not
//     while a cache lags, not after an answer was lost, not after a restart. A run sees
//     what earlier runs for its key wrote, so there is nothing to expect or to count. The
//     name of a Pod is drawn here and not by the server; a create that may or may not
//     have happened is sent again under its old name (podwriter), and the server takes it
//     once.
//   - A Pod that has failed, has succeeded or is being deleted does not count, and
//     is replaced.
//   - An owner that is being deleted is not scaled, adopts nothing and releases
//     nothing. Its status is kept.
//   - A Pod is deleted by its UID, never by its name alone.
//   - A status that has not changed is not written.
//   - A Pod's change finds its owner, and the owners that may want it, by indexes: it
//     costs the same however many owners and Pods the namespace holds.
//
// Not covered by the first point is a request that the server carries out when no process
// expects it any more: one of a process that was killed meanwhile, although the server
// drops a request whose connection breaks and a new process begins with a state no older
// than its own first request; or one that was sent again under its name, while the Pod of
// the second request has already ended, or left, and been removed. Such a Pod is surplus,
// and is deleted.
//
// # Where it differs from upstream
//
// Behaviour is that of kube-controller-manager 1.37
// (k8s.io/kubernetes/pkg/controller/replicaset, replica_set.go, which serves both kinds
// there too). On purpose it differs here:
//
//   - Names: see above. They have the same form, and generateName is set too.
//   - The status counts what the run has just made and deleted. Upstream counts
//     what was there before and writes another status later.
//   - In a namespace that terminates, the first refusal ends the creating of this
//     run; upstream sends all creates.
//   - Deletes carry the Pod's UID, and at most 64 are sent at a time.
//   - Which Pods share a node is counted over the Pods that the siblings, the owners
//     that one owner has, manage. Upstream counts all Pods that their selectors match,
//     and counts none if the owner has no owner.
//   - Changes of Pods that do not matter to this controller start no run: that they were
//     scheduled, got an address, or restarted a container.
package replicas
