// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package devicetainteviction deletes Pods whose devices have a NoExecute taint that their claims
// do not tolerate, or not for ever.
//
//	ResourceSlice (a driver's taint) ─┐
//	                                  ├─▶ device ◀─ ResourceClaim ◀─ Pod ─▶ condition, then delete
//	DeviceTaintRule (an admin's) ─────┘             (tolerations)
//
// # What it watches and writes
//
// It watches Pods, ResourceClaims, ResourceSlices and DeviceTaintRules, and is two loops.
//
// The loop over Pods gives a Pod that must go the condition DisruptionTarget with the reason
// DeletionByDeviceTaintManager, and deletes it. The loop over DeviceTaintRules writes the
// condition EvictionInProgress of a rule by server-side apply: how many Pods are still to go, or,
// for a rule with the effect None, how many would go with the effect NoExecute.
//
// # What holds
//
//   - A Pod goes if one of its claims is reserved for it and has a device with a NoExecute taint,
//     from its ResourceSlice or from a rule, which the claim does not tolerate. A claim that
//     tolerates the taint for a time lets the Pod stay so long after the time at which the taint
//     was added. The earliest of several times counts.
//   - Of the slices of a pool, those of the newest generation count.
//   - A Pod whose devices lose the taint stays, and an Event says that it does.
//   - A Pod without a node, one that has ended, and one that is being deleted are left alone.
//   - The times are those of the API, so they go on through a restart.
//   - A Pod is deleted by its UID, with its own grace period, and after the condition is written.
//   - An event costs its own Pods and nothing more. The Pods of a claim, the claims of a device
//     and the slices of a pool are found by indexes. A slice without taints starts no run.
//   - The status of a rule is written when its spec changes, and then at most every 10 s while
//     Pods go. With the effect None it is written once.
//   - The loop over Pods does not wait for DeviceTaintRules: a server may not serve them. Rules
//     only add taints, so a rule that is not seen yet evicts no Pod too early.
//
// # What differs from kube-controller-manager
//
// Behaviour, texts and reasons of Events and conditions are those of its controller of the same
// name (k8s.io/kubernetes/pkg/controller/devicetainteviction), with these differences:
//
//   - A toleration without an effect is about NoExecute too, as the API says. Upstream evicts such
//     a Pod as soon as the scheduler has bound it.
//   - A rule says that no Pods are left to go also if they went for another reason. Upstream counts
//     again only after it has evicted a Pod.
//   - The Event "Marking for deletion" is sent when the Pod is deleted, and once.
//   - kube-controller-manager 1.37 waits for DeviceTaintRules before it evicts any Pod.
package devicetainteviction
