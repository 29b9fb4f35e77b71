// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package csrapproving approves the certificates by which kubelets authenticate, for
// authors with the right to request them.
//
// # What it watches and writes
//
// It watches CertificateSigningRequests, and adds the condition Approved, reason
// AutoApproved, to those of the signer kubernetes.io/kube-apiserver-client-kubelet that
// have the form of a kubelet's request and whose author has the right, by a
// SubjectAccessReview of the server:
//
//	create certificatesigningrequests/selfnodeclient   a kubelet renews its own
//	                                                   certificate
//	create certificatesigningrequests/nodeclient       a node joins: a bootstrap token
//	                                                   asks in its name
//
// It leaves every other request to other approvers, and never denies one.
//
// # What holds
//
//   - A request that was decided stays as it was decided. The approval is stored only if
//     the request has not changed since it was read.
//   - An author without the right may get it later, and no event reports that. The controller
//     reviews again, first after [AskFirst], then whenever the request is twice as old, and
//     at least every [AskLast]. csrcleaner deletes requests that are undecided for a day.
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/certificates/approver). On purpose it differs in one
// place: an author without the right is not a failure here, and is not retried as one.
package csrapproving
