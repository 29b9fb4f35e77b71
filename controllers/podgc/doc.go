// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podgc removes Pods that no other component removes: no kubelet ends them, and
// no owner collects them.
//
// # What it watches and writes
//
// It checks every 20 s what the informers of Pods and Nodes have. These Pods go:
//
//   - ended ones beyond 12,500 of them, evicted ones first, then the oldest;
//   - orphans, which are bound to a node that there is not. The node must have been
//     missing for 40 s, and must not exist on the server either;
//   - those that are being deleted and are bound to no node;
//   - those that are being deleted on a node that is not ready and has the taint
//     node.kubernetes.io/out-of-service;
//   - those whose deletion has stopped halfway: no grace period is left, and nothing
//     holds them. The server deletes a Pod in two writes, and does only the first if the
//     client is killed in between.
//
// What goes is marked Failed, if it has not ended, and then deleted with a grace period
// of 0. An orphan is given the condition DisruptionTarget with the reason DeletionByPodGC
// as well. Finalizers are not touched: a Pod that has one stays until its owner has
// removed it, as a Job does that counts Pods that have failed.
//
// # How it is built
//
// The look finds the keys of Pods that may have to go. Each is judged once more in a run
// of its own (reason.go), which also deletes it, with retries. The check reads indexes:
// it costs time for the Pods to remove, and none for the Pods that stay.
//
// # What holds
//
//   - A Pod is deleted by its UID, never by its name alone.
//   - One that has ended, been deleted with a grace period of 0 and is held by a
//     finalizer is left alone.
//   - A Pod that ends by itself at the last moment is not marked Failed.
//   - No Pod counts as an orphan while the server does not answer.
//   - A reason that lies with a node is confirmed by the server, not by the informer, right
//     before each Pod is removed: that the node is not there, or that it is the same node, not
//     ready and out of service.
//   - Quarantine starts again with the process.
//
// # Differences from upstream
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/podgc, gc_controller.go). On purpose it differs:
//
//   - Deletes carry the Pod's UID, and the mark the version that was seen.
//   - What fails is tried again with growing delay, not after 20 s.
//   - Upstream takes the informer's word that a node is out of service, and removes Pods of
//     a node whose taint was taken off meanwhile.
//   - Pods that a finalizer holds are not deleted again every 20 s. They do not count
//     among those that have ended, either: upstream would choose them before others.
//   - A deletion that has stopped halfway is finished. Upstream does so by chance, when
//     the Pod has ended and is too many.
package podgc
