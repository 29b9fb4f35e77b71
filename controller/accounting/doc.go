// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package accounting computes what objects count for in ResourceQuotas, and keeps sums of it.
//
// A ResourceQuota limits resources of a namespace: CPU and memory that Pods request, storage
// that PersistentVolumeClaims request, node ports of Services, devices of ResourceClaims, and
// numbers of objects of any kind. What an object counts for is a [Charge]:
//
//	quota, err := accounting.NewQuota(resourceQuota)
//	charge, err := quota.Charge(accounting.Pods, pod, accounting.Around{Now: now})
//	sum.Set(pod.UID, charge.Used)
//
// [Quota.Charge] regards the scopes of the quota, and the resources that it limits. [Pod],
// [Service], [PersistentVolumeClaim], [ResourceClaim] and [Object] return what objects count
// for in all quotas.
//
// # Sums
//
// A [Sum] remembers what each object counts for. An event costs as much as the object has
// resources, however many objects the namespace has: what the object counted for before is
// subtracted, and what it counts for now is added. Quantities are exact, so the sum is that of
// a full count, in whatever order events arrive.
//
// # Time
//
// A Pod that is being deleted counts until its grace period is over, even if its node does
// not answer and the Pod stays. No event marks that moment: [Charge.Until] has it, and the
// controller must compute the charge again then.
//
// # Sources
//
// The charges are those of k8s.io/kubernetes v1.37, pkg/quota/v1/evaluator/core, and
// k8s.io/apiserver, pkg/quota/v1, with the feature gates that are on by default. Requests and
// limits of a Pod are added up by k8s.io/component-helpers/resource, as upstream does it. A
// test of the control-plane module compares charges and sums with upstream's.
package accounting
