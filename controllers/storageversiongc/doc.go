// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storageversiongc removes API servers that are gone from StorageVersions.
//
//	StorageVersion apps.deployments   apiserver-a: apps/v1      Lease apiserver-a in kube-system
//	                                  apiserver-b: apps/v1      (no Lease: removed)
//
// Each API server holds a Lease in kube-system, and notes in StorageVersions in which version it
// stores each kind. When it is gone, its Lease expires and is removed, and its notes stay.
//
// The controller is off by default, as the feature gate StorageVersionAPI is.
//
// # What it watches and writes
//
// It watches StorageVersions and the Leases of API servers. It writes the status of
// StorageVersions, and deletes those in which no API server is left.
//
// # What holds
//
//   - A note is removed only after the server has said that its Lease does not exist, or that
//     it is not that of an API server.
//   - An update carries the version of the StorageVersion that was judged, and a delete its UID
//     and version: what an API server notes meanwhile stays.
//   - The condition AllEncodingVersionsEqual and the common version are those of the API
//     servers that are left.
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/storageversiongc). It differs in these places: upstream
// takes every error of a read for a Lease that is gone, and deletes without a precondition.
package storageversiongc
