// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pcrcleaner deletes PodCertificateRequests that are older than 15 minutes.
//
// Kubelets create a PodCertificateRequest for each certificate that a Pod mounts. A signer
// answers it within seconds, and nothing else removes it.
//
// # What it reads and writes
//
// Every 5 minutes it lists the metadata of PodCertificateRequests, and deletes those that are
// older than 15 minutes. It watches none: a request that is a few minutes late does no harm, and
// a cluster has as many of them as Pods start.
//
// # What holds
//
//   - A delete carries the UID, so another request of the name stays.
//   - A delete that fails stops no other one, and is tried again.
//   - A server that does not serve the kind is no failure: the controller looks again after
//     5 minutes.
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/certificates/cleaner). It differs in these places: upstream
// keeps a cache of all requests, and logs errors where the server does not serve the kind.
package pcrcleaner
