// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ephemeralvolume creates the PersistentVolumeClaims of generic ephemeral volumes.
//
// A Pod may have the template of a claim in place of a claim's name. The controller creates the
// claim, which is called after the Pod and the volume, "web-cache" for the volume cache of Pod web.
// The Pod is its owner and its controller, so the garbage collector deletes the claim after the Pod.
//
// # What it watches and writes
//
// It watches Pods and PersistentVolumeClaims. It creates claims, and records Events about Pods.
//
// # What holds
//
//   - A claim of that name that the Pod does not own is never the Pod's: it may have data that the
//     author of the Pod must not see. An Event FailedBinding and the reason ClaimOfAnother name it.
//     The Pod gets its claim when the other one is gone. If the cache does not show the other
//     one, the server is asked again after 10 seconds.
//   - A claim that is deleted is created again for as long as its Pod runs.
//   - A Pod that is being deleted, or that has ended, gets no claim.
//   - One claim that cannot be created delays no other claim of the Pod.
//   - Only a new Pod, and a claim that goes or changes its owners, start a run. The spec of a Pod
//     does not change, so its other events start none.
//   - After a create that got no response, the claim of that name is read from the server: if the
//     Pod owns it, it is the one.
//
// # What differs from kube-controller-manager
//
// Behaviour, metrics and Events are those of its controller of the same name
// (k8s.io/kubernetes/pkg/controller/volume/ephemeral), with these differences:
//
//   - It tries again and again while a claim of another owner is in the way, with an Event each
//     time. Here the end of that claim starts the next run.
//   - It stops at the first volume that fails.
//   - It creates the claim of a Pod that has ended again when a client deletes it.
package ephemeralvolume
