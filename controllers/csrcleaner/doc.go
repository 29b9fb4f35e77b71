// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package csrcleaner deletes CertificateSigningRequests that are no longer needed.
//
// Kubelets make requests by themselves, and nothing else removes them.
//
// # What it watches and writes
//
// It watches CertificateSigningRequests, and deletes one that has been, for longer than
//
//	an hour           approved and answered with a certificate
//	an hour           denied
//	an hour           failed
//	a day             approved and not answered
//	a day             undecided
//
// and one whose certificate has expired, at once. Time counts from the condition, and of
// an undecided request from its creation.
//
// # What holds
//
//   - A request that has changed since it was read is not deleted: a request that is
//     approved just as its day ends stays.
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/certificates/cleaner). On purpose it differs in these
// places: upstream checks all requests once an hour, and this controller each when its
// time has come. A delete carries UID and version, and one that fails is tried again.
package csrcleaner
