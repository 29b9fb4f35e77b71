// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pvcprotection keeps PersistentVolumeClaims that Pods use from being removed, and
// sets a condition on bound ones that no Pod uses.
//
// Each claim has the finalizer kubernetes.io/pvc-protection, which admission adds when the
// claim is created. A claim that is deleted stays while a Pod on a node has a volume of it.
// The controller then removes the finalizer.
//
// A bound claim has the condition Unused: True since the last Pod with a volume of it ended,
// False while there is one.
//
// # What it watches and writes
//
// It watches PersistentVolumeClaims and Pods, updates the finalizers and the status of claims, and
// records Events on them.
//
// # What holds
//
//   - A Pod event enqueues the claims of that Pod alone, and a claim finds its Pods by an index.
//   - Before a finalizer is removed, and before the condition becomes True, the Pods of the
//     namespace are listed from the server: the cache may not have seen a Pod yet. One list serves
//     all claims of the namespace that the cache showed in the same state before the list.
//   - A Pod that the list has and the cache has not is looked for again after 10 seconds: if it goes
//     while the watch of Pods is broken, it has no event.
//   - A Pod without a node does not keep a claim: a kubelet starts no Pod whose claim is being
//     deleted. For a claim of a generic ephemeral volume, neither does a Pod that is being
//     deleted with a grace period of 0.
//   - A claim that was created without the finalizer gets it, unless it is being deleted.
//   - Updates carry the version of the claim that was judged.
//
// # What differs from kube-controller-manager
//
// Behaviour, and the texts of the condition, are those of its controller of the same name
// (k8s.io/kubernetes/pkg/controller/volume/pvcprotection), with these differences:
//
//   - It says in its log alone that Pods use a claim that is deleted. Here an Event InUse names
//     them, once in the life of the process.
//   - It lists the Pods of a namespace in each run for a claim without a Pod in its cache. Here a
//     claim whose condition is True already costs no list.
//   - If a list has a Pod that its cache never shows, it looks at the claim again when the claim or
//     another Pod of it changes, or when its informers resync after half a day or more.
package pvcprotection
