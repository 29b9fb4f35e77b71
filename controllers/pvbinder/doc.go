// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pvbinder binds PersistentVolumeClaims and PersistentVolumes to each other, has volumes
// made for claims, and reclaims volumes whose claims are gone.
//
// # A binding
//
// A claim and a volume are bound when each refers to the other. A binding takes four writes, in
// this order:
//
//	volume   spec.claimRef, with the UID of the claim
//	volume   status.phase is Bound
//	claim    spec.volumeName, and the annotation pv.kubernetes.io/bind-completed
//	claim    status.phase is Bound, with the capacity and the access modes of the volume
//
// The first write decides: it carries the resourceVersion of the volume that was read, so that two
// claims cannot get one volume. Each further write follows from the objects, so that a binding is
// taken up after a crash at any of them. The scheduler makes the first write as well, for claims
// whose class waits for the first consumer.
//
// # Two loops
//
// The loop over claims makes all four writes. The loop over volumes writes only volumes that no
// claim is bound to or being bound to: it makes them Available, Released or free again. So a claim
// and its volume never conflict with each other.
//
//	claims    decideClaim, a function of the claim, its volumes, its class and its Pods
//	volumes   decideVolume, a function of the volume and its claim
//
// Nothing waits for a period. A volume that becomes free starts the run of the oldest claim that it
// satisfies, a class the runs of the claims that wait for it, a Pod those of its claims. What waits is
// reconciled again after Options.SyncPeriod to repeat its Event, and each time after twice as long.
//
// # Which volume
//
// The volume that a claim names; else the volume that refers to the claim; else the free volume of
// its class with the fewest access modes and the least capacity that satisfies it. The choice is
// serialized by class, and a volume that was chosen counts as taken before the cache shows it. If a
// class waits for its consumer, the scheduler chooses among free volumes. If no volume fits, the
// provisioner of the class is asked to make one, by an annotation. A claim that says nothing about
// a class gets the default class, also later.
//
// # When a claim is gone
//
// The volume is Released, and its reclaim policy says what follows: Retain keeps it; Delete leaves
// it to its driver; Recycle runs a Pod that deletes the files, and makes the volume free again. A
// claim counts as gone when the server says so, not the cache: a volume that a driver has just made
// may be ahead of its claim. Before a directory is removed or a volume is recycled, volume and
// claim are read from the server.
//
// A claim that was bound once never gets another volume. Without its volume it is Lost. The volume
// counts as gone when the server says so, not the cache.
//
// # What the process forgets
//
// The volumes that were chosen, the claims that were enqueued for a volume, the time of the next
// reminder, and the back-off of recycler Pods. After a restart all of this begins again.
//
// # What differs from kube-controller-manager
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/volume/persistentvolume), with these exceptions:
//
//   - A volume that is reserved for a claim goes before all free volumes, as in the scheduler.
//     Upstream prefers a free volume with fewer access modes.
//   - A claim that is being deleted is not bound to a volume that does not know its UID.
//   - An Event about a wait is repeated each time later, up to every 15 minutes. Upstream repeats
//     it every 15 seconds.
//   - Directories of --enable-hostpath-provisioner are named after the UID of the claim, so that a
//     second attempt makes no second one. They are deleted only with that flag, and only below
//     /tmp, with the path cleaned before.
//   - A recycler Pod that was started before a restart is waited for. Events of the recycler Pod
//     are not copied to the volume; its creation and its result are.
//   - FlexVolume plugins are not run: the controller has never deleted or made their volumes.
package pvbinder
