// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package legacytokencleaner removes unused service-account tokens in Secrets.
//
// Before Kubernetes 1.24 each account got a Secret with a token that never ends. Most
// of them lie there unused, and each opens the cluster to any person that finds it. The API
// server notes on a Secret when its token was last used; this controller removes those
// that have not been for a year, in two steps.
//
// # What it watches and writes
//
// It checks all tokens once when it starts and then once a day. It reads Secrets of type
// kubernetes.io/service-account-token, accounts and Pods from informers, and asks the
// server since when it notes uses: the ConfigMap
// kube-apiserver-legacy-service-account-token-tracking in kube-system. It sets a label of
// Secrets, and deletes Secrets.
//
// # The two steps
//
//	not used for a year ─▶ label legacy-token-invalid-since ─▶ a year later ─▶ deleted
//
// With the label the server refuses the token, and accepts the token again when a user
// removes the label.
//
// # What holds
//
//   - Only what was made automatically is touched: Secrets that their account names in
//     its secrets. A token that a user created by hand is left alone.
//   - Nothing is touched before the server has noted uses for a year, nor what is
//     younger than that, nor what a Pod mounts, nor what says when it was last used in
//     a way that cannot be read.
//   - A Secret is deleted only as it was seen: if anything about it changed, it stays
//     until the next day.
//   - Days are days of UTC, as the server writes them.
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/serviceaccount,
// legacy_serviceaccount_token_cleaner.go). On purpose it differs in two places. It
// watches no Secrets of other types. And what fails is tried again with growing pauses;
// upstream waits for the next day.
package legacytokencleaner
