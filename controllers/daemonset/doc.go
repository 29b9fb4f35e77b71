// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package daemonset runs a Pod of each DaemonSet on every node that its template fits.
//
//	claim ─▶ revision ─▶ nodes ─▶ decide ─▶ create and delete ─▶ prune ─▶ status
//	Pods     of the      that              Pods                revisions
//	         template    fit
//
// # What it watches and writes
//
// It watches DaemonSets, Pods, Nodes and ControllerRevisions. It creates, deletes, adopts and
// releases Pods and ControllerRevisions, and writes the status of DaemonSets. The scheduler binds
// the Pods. An affinity to one node says where, before a Pod is bound.
//
// # The way of a run
//
//   - claim (controller.go) finds the Pods of the DaemonSet. The fields of Pods that decide are
//     kept in memory (pods.go), so a Pod is decoded once after each of its changes.
//   - The history (history.go) finds or creates the revision of the template. Its hash is a label
//     of the Pods that are created from it, and tells old Pods from new ones.
//   - The places (places.go, fit.go) say which nodes fit: a node is compared with the template
//     once after each of its changes.
//   - decide (plan.go, rollout.go, backoff.go) is a function of plain values. It first gives each
//     node the Pod that is missing, and deletes surplus ones. If no Pod is missing or
//     surplus, a rollout takes its next step.
//   - At most 250 Pods are created and 250 deleted in one run. The status (status.go) counts those
//     that the run has created.
//
// A second loop has Nodes for keys. It enqueues the DaemonSets for which a node fits otherwise than
// before. A heartbeat, or a label that no template asks for, starts no run. A Pod event starts a
// run of the DaemonSet that controls the Pod, and of no other.
//
// # What holds
//
//   - A node has one Pod of a DaemonSet, or, during a rollout with maxSurge, an old one and a new
//     one: not more while a cache lags, after an answer was lost, or after a kill. A run sees what
//     earlier runs for its key wrote. A create whose answer was lost is sent again under its name,
//     for the same node. Pods that have ended and are being deleted do not count.
//   - A rollout deletes a Pod that is ready only if fewer nodes than maxUnavailable are without an
//     available Pod. With maxSurge, it deletes one only when its successor is available, or when
//     enough other nodes have available Pods.
//   - A Pod is up to date if its hash or the generation of its template is that of the DaemonSet.
//     Hashes change with the version of Kubernetes. So a change from kube-controller-manager to
//     this controller, or back, replaces no Pod.
//   - A Pod that has failed is deleted at once, and again after 1 s, 2 s, and so on up to 15 min if
//     its successors fail on the same node. The wait begins at 1 s again with another template, another
//     node of the name, or another process.
//   - A DaemonSet that is being deleted is left as it is, its status included.
//   - A Pod is deleted by its UID. A status that has not changed is not written.
//
// # What differs from kube-controller-manager
//
// Behaviour, names, reasons of Events and numbers are those of its controller of the same name
// (k8s.io/kubernetes/pkg/controller/daemon), with these differences:
//
//   - A node that was not ready a minute before the revision existed does not count against the limits of
//     the rollout. Upstream counts it, and a few dead nodes stop the rollout for ever. A node that
//     gets unready later counts: the new template may be the cause.
//   - A Pod that is ready and not available yet is replaced within maxUnavailable, before the
//     others. Upstream replaces all such Pods at once, so a second update within minReadySeconds
//     leaves no Pod running. With maxSurge, such Pods are replaced within maxSurge.
//   - A Pod that is not available is deleted beyond the limits only if it is still as it was read.
//     Upstream also deletes one that has become available meanwhile.
//   - With maxSurge, a node whose Pod has failed gets the next one when the wait is over. Upstream
//     creates another Pod at once.
//   - With maxSurge, the generation of the template counts on all nodes. Upstream compares the hash
//     alone where two Pods run.
//   - When several revisions have the data of the template, the Pods of these revisions get the
//     hash of the one that stays. Upstream gives it to all Pods, those of older templates too.
//   - A node that goes enqueues the DaemonSets that it fitted. Upstream's status counts such a node
//     until something else changes.
//   - With a limit that cannot be read, nodes still get their Pods. A reason says what is wrong.
//   - A Pod on a node that does not exist any more does not stop a rollout with maxSurge.
//   - The nodes of a rollout come in the order of their names. Upstream's order is random.
package daemonset
