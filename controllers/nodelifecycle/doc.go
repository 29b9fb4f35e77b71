// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodelifecycle says of each Node where the scheduler must not place Pods.
//
// The server's admission taints every new Node with not-ready:NoSchedule, and only
// this controller lifts that taint: without it no Pod is ever scheduled.
//
// # What it watches and writes
//
// Its keys are Nodes. It writes their NoSchedule taints and two of their labels, in
// one patch, and nothing else:
//
//   - One taint for each condition that speaks against new Pods, and one for a node
//     that is cordoned. A taint
//     goes when its condition does. Taints of other keys or effects are not touched.
//   - The labels beta.kubernetes.io/os and beta.kubernetes.io/arch have the values of
//     kubernetes.io/os and kubernetes.io/arch.
//
// # What holds
//
//   - A Node is only looked at when something in it is not as it should be: that is
//     decided where the event arrives, without a copy, so that heartbeats cost
//     neither a run nor a write.
//   - A patch names the resourceVersion that it was made from. The list of taints is
//     replaced as a whole, and a taint that somebody else has just set must not be
//     lost.
//
// # What it does not do yet
//
// It does not watch over the health of Nodes: it neither turns conditions Unknown
// when a Node falls silent, nor sets NoExecute taints, nor marks Pods not ready.
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/nodelifecycle, node_lifecycle_controller.go).
// On purpose it differs where that writes taints and labels in up to three
// requests, after a read each, and forgets a Node whose write failed until its next
// heartbeat; this one writes once, without a read, and tries again.
package nodelifecycle
