// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodettl annotates Nodes with how long kubelets may keep the Secrets and
// ConfigMaps that they have read: the larger the cluster, the longer.
//
// It watches Nodes, and writes their annotation node.alpha.kubernetes.io/ttl, in
// seconds: 0 up to 100 nodes, 15 up to 500, 30 up to 1,000, 60 up to 2,000, and 300
// beyond. Going down, a limit is a tenth lower, so that a cluster of about that size
// does not have all its nodes written again and again.
//
// # What holds
//
//   - Each Node gets the annotation that belongs to the size of the cluster, at once when
//     the size passes a limit, and again when a client changes it.
//   - Heartbeats cost no run.
//   - A process begins as if the cluster had grown from nothing: between a limit and a
//     tenth below, the lower time holds.
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/ttl, ttl_controller.go). On purpose it differs in one
// place: upstream writes each Node when that changes next.
package nodettl
