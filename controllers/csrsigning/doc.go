// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package csrsigning signs certificates: it answers CertificateSigningRequests that
// were approved and that name one of Kubernetes' own signers.
//
// # What it watches and writes
//
// It watches CertificateSigningRequests, and writes their status: the certificate, or
// the condition Failed with the reason SignerValidationFailure where a request is not
// what its signer signs. It approves nothing, and signs nothing that was denied or has
// failed or has its certificate.
//
// # The signers
//
//	kubernetes.io/kube-apiserver-client          client certificates for whomever they
//	                                             name; usages client auth, and digital
//	                                             signature and key encipherment at will
//	kubernetes.io/kube-apiserver-client-kubelet  client certificates of kubelets:
//	                                             O=system:nodes, CN=system:node:NAME, no
//	                                             alternative names
//	kubernetes.io/kubelet-serving                serving certificates of kubelets: the
//	                                             same names, and at least one DNS name or
//	                                             IP address
//	kubernetes.io/legacy-unknown                 whatever is asked for; nothing in a
//	                                             cluster should trust it
//
// Each has a certificate authority of its own, or all have one, see [Options]. A
// signer that was given none is left to others.
//
// # What is signed
//
// Subject, alternative names and public key are those of the request, the usages those
// of spec.usages. Whatever else the request carries is dropped: a certificate never is
// an authority. It begins [Backdate] ago, so that a clock that is behind accepts it. It
// ends when spec.expirationSeconds says, but not earlier than in [ShortestLifetime],
// not later than [Options] allows, and never after its authority.
//
// # The authority's key
//
// Certificate and key are read before each signature, so what replaces them counts
// from the next one on. Where they cannot be read, or do not belong together, as in the
// middle of a replacement, the request waits and is tried again. The key stands in no
// log and in no error.
//
// # What holds
//
//   - A request gets one certificate. The certificate is stored only if the request has
//     not changed since it was read. A certificate that was signed but not stored,
//     because the process ended, was never handed out.
//   - What can never succeed is not tried again.
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/certificates/signer and authority). On purpose it
// differs in these places: one loop serves all signers, where upstream runs four over the
// same requests. Upstream continues to sign with the authority that it read before if the
// files cannot be read. Upstream accepts any certificate as an authority, and this only
// one that is. A shortest lifetime never exceeds the longest one.
package csrsigning
