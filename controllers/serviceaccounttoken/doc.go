// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serviceaccounttoken fills Secrets of type
// kubernetes.io/service-account-token with tokens that last, and removes them with
// their account.
//
// Most tokens need no Secret: the kubelet asks the server for short-lived ones. Who
// wants one that lasts, for a program outside of the cluster say, creates a Secret of
// that type, which names an account in an annotation, and finds the token in it.
//
// # What it watches and writes
//
// Its keys are Secrets, each with the account that it names. It watches those of that one type, by a field selector, so
// that no other Secret enters the process, and ServiceAccounts that go. It updates and
// deletes Secrets, and takes the name of a Secret that went off its account.
//
// # What holds
//
//   - A Secret has the token of its account, signed with the key that the server knows,
//     the certificates of the API server, and its namespace. An existing token is left
//     unchanged; certificates that differ are replaced.
//   - An account is more than its name: a Secret whose annotation names the UID of
//     another account is deleted, as is one whose account does not exist. Before that the
//     controller reads the account from the server: an informer may not have observed it
//     yet.
//   - A Secret that goes is taken off the secrets of its account, unless there is
//     another under its name by then.
//   - No token and no key stands in a log, an event, or an error.
//
// # The token
//
// A JSON Web Token in the form that API servers know as legacy: issuer
// "kubernetes/serviceaccount", without an end. It names namespace, account, UID of
// the account, and Secret; the server compares it with what is in that Secret, so that
// it ends with it. Keys are RSA (RS256) or ECDSA (ES256, ES384, ES512).
//
// # Where it differs from upstream, on purpose
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/serviceaccount, tokens_controller.go), but:
//
//   - It watches Secrets of its type alone. Upstream holds all Secrets of the cluster.
//   - The Secrets of an account that goes are found through an index. Upstream looks
//     through all of the namespace.
//   - A failure is tried again until it succeeds, with growing pauses. Upstream gives
//     up after ten times.
//   - A Secret that is being deleted, and only waits for its finalizers, gets no token.
package serviceaccounttoken
