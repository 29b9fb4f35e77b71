// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tainteviction deletes the Pods of nodes with a NoExecute taint that do not
// tolerate it, or not for ever.
//
// # What it watches and writes
//
// Its keys are Pods. It reconciles a Pod when it is bound to a tainted node, when its
// tolerations change, when the NoExecute taints of its node do, and when its time is
// over. It gives a Pod that must go the condition DisruptionTarget, with the reason
// DeletionByTaintManager, and deletes it. Its Events are called TaintManagerEviction:
// "Marking for deletion Pod ..." when one has been deleted, and "Cancelling deletion of
// Pod ..." when one whose time was running may stay.
//
// It sets and lifts no taint: that is the work of others, of node-lifecycle-controller
// for nodes that are down.
//
// # What holds
//
//   - A Pod that does not tolerate one of the taints goes at once.
//   - One that tolerates each of them, some for a time, goes when the first of these
//     times is up. The time for which a taint is tolerated runs from when this
//     controller first saw both on one node, by its own clock.
//   - A Pod whose node loses the taint stays, and so does one that comes to tolerate it.
//     If the taint comes back, the time starts again.
//   - A node that goes from not-ready to unreachable or back stays down: the time runs
//     on. Otherwise each taint has its own.
//   - A Pod is deleted by its UID, never by its name alone, with its own grace period,
//     and only after the condition has been written.
//   - A Pod that is being deleted already is left alone. One that has ended is deleted
//     like others.
//   - As long as no node has a NoExecute taint, a Pod's event costs a look-up in an empty
//     index.
//
// When the process starts, the time starts again for all Pods: no controller may have
// lifted taints while it did not run, and Pods must not be evicted for that.
//
// # Differences from upstream
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/tainteviction, taint_eviction.go). On purpose it
// differs:
//
//   - Times follow the taints. Upstream keeps the time that it first computed when
//     another taint with a shorter or longer toleration comes, and when tolerations
//     change, except when they end.
//   - A Pod that another client deletes, or whose node is gone, is forgotten without an
//     event. Upstream says that it cancels the deletion of the first, and deletes the
//     second when its time is up, unless pod-garbage-collector-controller was quicker.
//   - A deletion that fails is tried again, with growing delay, until it succeeds.
//     Upstream tries five times within 50 ms.
//   - "Marking for deletion" is said once, when it is done.
//   - Deletes carry the Pod's UID.
package tainteviction
