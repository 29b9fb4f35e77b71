// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trustbundle publishes the certificates by which Pods know the API server in a
// ClusterTrustBundle.
//
//	ClusterTrustBundle kubernetes.io:kube-apiserver-serving:0f3c5a…   (a hash of the certificates)
//	  spec.signerName: kubernetes.io/kube-apiserver-serving
//
// Pods mount it with a projected volume. The certificates are those of --root-ca-file, which
// root-ca-certificate-publisher-controller writes into each Namespace.
//
// # What it reads and writes
//
// Once a minute it lists the ClusterTrustBundles of the signer. It creates the one of the
// present certificates, restores its content, and then deletes those of other certificates.
//
// # What holds
//
//   - The bundle of the present certificates exists before another one is deleted.
//   - An update carries the version of the bundle that was read, and a delete its UID.
//   - It uses the first version of the kind that the server serves: v1, v1beta1, v1alpha1. A
//     server that serves none is no failure.
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/certificates/clustertrustbundlepublisher), with these
// differences: upstream watches the bundles, and so restores one at once. It looks for the kind
// when it starts and never again.
package trustbundle
