// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pvprotection keeps PersistentVolumes that are bound from being removed.
//
// Each PersistentVolume has the finalizer kubernetes.io/pv-protection, which admission adds
// when the volume is created. A volume that is deleted stays until its phase is not Bound.
// The controller then removes the finalizer.
//
// # What it watches and writes
//
// It watches PersistentVolumes, updates their finalizers, and records Events on them.
//
// # What holds
//
//   - A volume that was created without the finalizer gets it, unless it is being deleted.
//   - An update carries the version of the volume that was judged: where the volume has
//     changed since, it is judged again.
//
// # What differs from kube-controller-manager
//
// Behaviour is that of its controller of the same name
// (k8s.io/kubernetes/pkg/controller/volume/pvprotection), with this difference:
//
//   - It says in its log alone that a volume that is deleted is bound. Here an Event InUse names
//     the claim, once in the life of the process.
package pvprotection
