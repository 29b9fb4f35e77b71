// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resourceclaim makes the ResourceClaims of Pods from templates, and frees the devices of
// claims that no Pod uses any more.
//
//	template ──▶ claim ──▶ allocated, reserved for Pods ──▶ Pods end ──▶ free, or deleted
//	         here      scheduler                        kubelet      here
//
// # What it watches and writes
//
// It watches Pods, ResourceClaims and ResourceClaimTemplates, and is two loops. PodGroups are
// described below.
//
// The loop over Pods creates a claim for each entry of spec.resourceClaims with a template, and
// writes its name into status.resourceClaimStatuses, by server-side apply as the field manager
// ResourceClaimController. The scheduler reserves allocated claims for the Pods that it binds. For
// a Pod that is bound in another way, this loop adds it to status.reservedFor.
//
// The loop over claims removes Pods that have ended from status.reservedFor. When nothing is left
// there, it removes the allocation, and the finalizer resource.kubernetes.io/delete-protection. A
// claim that was made for one Pod is deleted when that Pod has ended.
//
// # What holds
//
//   - An entry of a Pod has one claim. The controller draws the name of a claim, so a create whose
//     response was lost is read from the server. A claim whose name did not reach the status,
//     because the controller was killed between the two writes, is found by its owner and its
//     annotation resource.kubernetes.io/pod-claim-name.
//   - A Pod that has ended gets no claim and no reservation. Neither does a Pod that is being
//     deleted.
//   - A reservation is removed if the cache shows that the Pod has ended or was deleted, or if the
//     server says so. A Pod that the cache does not show may be new, and another Pod of its name in
//     the cache may be the one before. As long as only the server has the Pod, it is asked again
//     every ten seconds: the Pod may go before the cache shows it, and then there is no event.
//   - The finalizer goes after the allocation, and the claim after the finalizer. Each of these
//     writes carries the version that the decision was made on, so a Pod that gets the claim
//     meanwhile is a conflict.
//   - A claim that was deleted, or lost its last Pod, while no controller ran is handled at the
//     start: the loop begins with all claims and all Pods with claims.
//   - An event of a Pod without claims is decided by two fields, and the Pod is not decoded. Of
//     other objects, indexes find the Pods concerned.
//
// A kill between the removal of the allocation and of the finalizer leaves the finalizer. It goes
// when the claim is deleted. Until then it may be the scheduler's, which sets it before it
// allocates.
//
// # What differs from kube-controller-manager
//
// Behaviour, names and reasons of Events are those of its controller of the same name
// (k8s.io/kubernetes/pkg/controller/resourceclaim), with these differences:
//
//   - A Pod that has ended is never reserved again, and gets no new claim when its claim is
//     deleted. Upstream can reserve and release its claim in turns.
//
//   - A claim that cannot be made delays no other claim of the Pod, and a claim that is missing
//     delays no reservation of another.
//
//   - A template that is missing is waited for, without retries.
//
//   - The claim of a Pod whose long name is cut after a dot gets a name that the API server accepts.
//
//   - Deletes carry UID and version. A claim that is being deleted is not deleted again.
//
//   - Pods of a PodGroup that is missing, and entries whose shared claim is, are waited for, without
//     retries.
//
// # PodGroups
//
// An entry of a PodGroup's spec.resourceClaims is shared by those Pods that have an entry of the
// same name with the same claim or template. With the feature gates GenericWorkload and
// DRAWorkloadResourceClaims, which are off by default, a third loop makes one claim for each entry of
// a PodGroup with a template, and writes its name into status.resourceClaimStatuses of the PodGroup.
// The loop over Pods copies the name into the status of the Pods. Such a claim is reserved for the
// PodGroup and not for its Pods, and the reservation ends when the PodGroup is gone. The garbage
// collector deletes the claim then.
//
// With GenericWorkload alone, the Pods of a PodGroup get the claims that they do not share. With
// neither gate they get none. A reservation of a PodGroup is then kept.
package resourceclaim
