// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tokencleaner deletes bootstrap tokens at the time at which they expire.
//
// A bootstrap token lets a machine join the cluster. A token has a time at which
// it expires, and a forgotten token should not stay where it can be found.
//
// # What it watches and writes
//
// It watches bootstrap tokens, which are Secrets of their own type in kube-system, and
// deletes them. It runs only if --controllers names it, as kubeadm's manifests do.
//
// # What holds
//
//   - A token goes when its time has come, and not before. One that says no time stays; one
//     whose time cannot be read has expired.
//   - A token is deleted in the version that was read: it stays if a user gives it more time
//     at the last moment, or if another token has its name.
//   - Secrets of other types and in other namespaces are left alone, whatever stands in them.
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/bootstrap, tokencleaner.go). On purpose it differs in
// three places. It watches no other Secrets. The deletion carries the version as well as the
// UID. And one that fails is tried again; upstream waits for the next change of the Secret.
package tokencleaner
