// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package csrapproving approves the certificates by which kubelets authenticate, for
// those who may ask for them.
//
// # What it watches and writes
//
// It watches CertificateSigningRequests, and adds the condition Approved, reason
// AutoApproved, to those of the signer kubernetes.io/kube-apiserver-client-kubelet that
// have the form of a kubelet's request and whose author has the right, which the server
// is asked about by a SubjectAccessReview:
//
//	create certificatesigningrequests/selfnodeclient   a kubelet renews its own
//	                                                   certificate
//	create certificatesigningrequests/nodeclient       a node joins: a bootstrap token
//	                                                   asks in its name
//
// Everything else is for somebody else to decide: it never denies.
//
// # What holds
//
//   - A request that was decided stays as it was decided. Approval is stored only if the
//     request has not changed since it was looked at.
//   - An author without the right may get it later, and no event says so: the server is asked
//     again, first after [AskFirst], then whenever the request is twice as old, and at
//     least every [AskLast]. csrcleaner removes what nobody decides on for a day.
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/certificates/approver). On purpose it differs in one
// place: that somebody lacks the right is no failure here, and does not count as one.
package csrapproving
