// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceclaim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/devices"
)

// claimView is what a decision about a claim depends on.
type claimView struct {
	claim *resourcev1.ResourceClaim
	// released reports whether a Pod that the claim is reserved for does not need it any more.
	released func(resourcev1.ResourceClaimConsumerReference) bool
	// owner is the Pod with the name of the Pod that the claim was made for, if there is one.
	owner *corev1.Pod
}

// claimPlan is what is to be done with a claim: the writes of its fields, in this order.
type claimPlan struct {
	// reservedFor and deallocate are the change of the status, if write is set.
	write       bool
	reservedFor []resourcev1.ResourceClaimConsumerReference
	deallocate  bool
	// unprotect removes the finalizer.
	unprotect bool
	// remove deletes the claim.
	remove  bool
	reasons []controller.Reason
}

// decideClaim returns what is to be done with a claim. It changes nothing.
//
// A claim is deallocated when it loses its last consumer, and not because it has none: a driver
// may allocate a claim before a Pod needs it.
func decideClaim(v claimView) claimPlan {
	claim := v.claim
	deleting := claim.DeletionTimestamp != nil
	protected := slices.Contains(claim.Finalizers, resourcev1.Finalizer)
	p := claimPlan{reservedFor: slices.DeleteFunc(slices.Clone(claim.Status.ReservedFor), v.released)}
	free := len(p.reservedFor) == 0
	if p.write = len(p.reservedFor) < len(claim.Status.ReservedFor); p.write || deleting {
		p.deallocate = free && protected && claim.Status.Allocation != nil
		p.write = p.write || p.deallocate
		p.unprotect = free && protected
	}
	if !free {
		if deleting {
			p.reasons = append(p.reasons, inUse(p.reservedFor))
		}
		return p
	}
	ref := metav1.GetControllerOfNoCopy(claim)
	if ref == nil || ref.APIVersion != "v1" || ref.Kind != "Pod" || deleting {
		return p
	}
	switch {
	case v.owner == nil: // the garbage collector deletes the claim if the Pod is gone
	case v.owner.UID != ref.UID, devices.Done(v.owner):
		p.remove = true
	}
	return p
}
