// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bootstrapsigner signs what a new node reads before it trusts any server.
//
// A machine that is to join a cluster knows a bootstrap token and no certificate. It reads
// the ConfigMap cluster-info in kube-public, which every user may read, and finds there
// the address of the cluster and the certificate authority to trust. A signature, which
// can be made only with the token, proves that they were not changed. This controller
// keeps these signatures: one for each token, under jws-kubeconfig- and the token's public
// part.
//
// # What it watches and writes
//
// It watches bootstrap tokens, Secrets in kube-system, and that one ConfigMap, and updates
// the ConfigMap. It runs only if --controllers names it, as kubeadm's manifests do.
//
// # What holds
//
//   - A token signs if its Secret is called after it, is not expired, and says that it may
//     (usage-bootstrap-signing is "true"). Every other signature is removed.
//   - A signature is one of the text that the ConfigMap has in the same version: an update
//     carries the version that was read, and after a conflict the signature is made again.
//   - Nothing else in the ConfigMap changes. One without the key kubeconfig is left alone.
//   - A signature goes when its token expires, not when the Secret does.
//   - The signature is a JSON Web Signature of the algorithm HS256 without its content (RFC
//     7515, appendix F), the same bytes that kubeadm compares.
//   - Neither tokens nor signatures are ever logged.
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/bootstrap, bootstrapsigner.go). On purpose it differs in
// three places. It watches no other Secrets and ConfigMaps. A signature goes at the moment
// when its token expires; upstream's stays until something else changes. And an update that
// fails is tried again; upstream waits for the next change.
package bootstrapsigner
