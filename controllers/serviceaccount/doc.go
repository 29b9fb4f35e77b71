// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serviceaccount gives every namespace its ServiceAccount "default".
//
// A Pod that names no account runs as "default", and the server's admission
// refuses Pods in a namespace that has none: without this controller no Pod can be
// created at all.
//
// # What it watches and writes
//
// Its keys are namespaces. It reconciles a namespace when the namespace appears or
// changes, and when its account is deleted. Of ServiceAccounts it watches only those
// called "default", so that a cluster with many accounts costs it nothing. It creates
// accounts; it never changes or deletes one.
//
// # What holds
//
//   - An active namespace has the account, and gets it back when it is deleted.
//   - A namespace that terminates is left alone. That the server refuses a create
//     because the namespace terminates, or is gone, is no failure: the account was
//     not to be.
//   - An account that is there already is no failure.
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/serviceaccount, serviceaccounts_controller.go).
// On purpose it differs in one place: where a create fails because the namespace is
// gone, upstream tries once more.
package serviceaccount
