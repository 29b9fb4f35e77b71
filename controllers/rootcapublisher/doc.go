// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rootcapublisher gives every namespace the ConfigMap "kube-root-ca.crt",
// which holds the certificates by which Pods know the API server.
//
// The kubelet mounts it beside each Pod's token: a Pod whose namespace has none does
// not start.
//
// # What it watches and writes
//
// Its keys are namespaces. It reconciles a namespace when it appears or changes, and when
// its ConfigMap changes or goes. Of ConfigMaps it watches only those of that name, so
// that the others, which are many and large, cost it nothing. It creates and updates
// them; it never deletes one.
//
// # What holds
//
//   - An active namespace has the ConfigMap, with the certificates and nothing else as
//     its data, and an annotation that explains it. Changes by other clients are
//     reverted; other annotations and labels stay.
//   - A namespace that terminates is left alone, as is one whose ConfigMap is right.
//   - Certificates are not secret, and still none stands in a log or an error.
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher). On purpose it
// differs in three places. It watches no other ConfigMaps. In a namespace that
// terminates it changes nothing; upstream still repairs there. And it refuses to work
// without certificates, where upstream publishes an empty file.
package rootcapublisher
