// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/volumes"
)

// volumeView is what a volume is decided by.
type volumeView struct {
	volume *corev1.PersistentVolume
	claim  *corev1.PersistentVolumeClaim // that the volume refers to by UID, or by name without one; nil if there is none
	behind bool                          // the server has the claim, and the cache has not
	asks   *corev1.PersistentVolumeClaim // that names the volume, which refers to no claim
}

// volumePlan is what is to be done for a volume. At most one of the steps is set. A volume that a
// claim is being bound to, or is bound to, is written by the run for the claim.
type volumePlan struct {
	available bool // the volume is Available
	release   bool // the claim is gone, or has another volume: the volume is reclaimed
	unbind    bool // the claim has another volume: this one is free again
	mismatch  bool // the claim cannot have the volume, and both get an Event
	reason    *controller.Reason
}

// decideVolume returns what is to be done for a volume.
// Source: k8s.io/kubernetes/pkg/controller/volume/persistentvolume, syncVolume.
func decideVolume(v *volumeView) (p volumePlan) {
	ref, claim := v.volume.Spec.ClaimRef, v.claim
	switch {
	case ref == nil:
		p.available = v.asks == nil || fits(v.volume, v.asks) != nil
	case ref.UID == "":
		p.available = claim == nil || !takes(claim, v.volume)
		if p.available {
			p.reason = new(reason(codeReserved, "the volume is reserved for the claim {claim}, which does not exist or cannot have it", "the claim is created, or spec.claimRef is removed",
				"claim", ref.Namespace+"/"+ref.Name))
		}
	case claim == nil:
		p.release = true
	case claim.Spec.VolumeName == "":
		p.mismatch = !volumes.SameMode(claim, v.volume)
	case claim.Spec.VolumeName == v.volume.Name:
	default:
		_, provisioned := v.volume.Annotations[volumes.ProvisionedBy]
		p.release = provisioned && v.volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
		p.unbind = !p.release
	}
	return p
}

// takes reports whether a claim is going to be bound to a volume that is reserved for it by name.
func takes(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	if claim.Spec.VolumeName != "" {
		return claim.Spec.VolumeName == volume.Name
	}
	return isWaiting(claim) && fits(volume, claim) == nil
}
