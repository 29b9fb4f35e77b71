// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/setpoint-io/setpoint/internal/volumes"
)

// The four writes of a binding, in this order. Each returns the object to write, or nil if it is
// as it should be, so that a binding can be taken up after any of them.

// boundVolume returns a volume that refers to a claim. A reference that a user wrote without a UID
// gets one, and stays the user's.
// Source: k8s.io/component-helpers/storage/volume, GetBindVolumeToClaim.
func boundVolume(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	ref := volume.Spec.ClaimRef
	ours := !volumes.Refers(volume, claim)
	if !ours && ref.UID == claim.UID {
		return nil
	}
	next := volume.DeepCopy()
	next.Spec.ClaimRef = referenceTo(claim)
	if ours {
		annotate(&next.Annotations, volumes.BoundByController)
	}
	return next
}

// referenceTo returns the reference of a volume to its claim.
func referenceTo(claim *corev1.PersistentVolumeClaim) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim",
		Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
	}
}

// inPhase returns a volume with a phase.
func inPhase(volume *corev1.PersistentVolume, phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
	if volume.Status.Phase == phase {
		return nil
	}
	next := volume.DeepCopy()
	next.Status.Phase, next.Status.Message = phase, ""
	return next
}

// boundClaim returns a claim that names its volume.
// Source: k8s.io/kubernetes/pkg/controller/volume/persistentvolume, bindClaimToVolume.
func boundClaim(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	_, completed := claim.Annotations[volumes.BindCompleted]
	if completed && claim.Spec.VolumeName == volume.Name {
		return nil
	}
	next := claim.DeepCopy()
	if claim.Spec.VolumeName != volume.Name {
		next.Spec.VolumeName = volume.Name
		annotate(&next.Annotations, volumes.BoundByController)
	}
	annotate(&next.Annotations, volumes.BindCompleted)
	return next
}

// boundStatus returns a claim whose status says what its volume has.
// Source: k8s.io/kubernetes/pkg/controller/volume/persistentvolume, updateClaimStatus.
func boundStatus(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, error) {
	becomes := claim.Status.Phase != corev1.ClaimBound
	if !becomes && slices.Equal(claim.Status.AccessModes, volume.Spec.AccessModes) {
		return nil, nil
	}
	next := claim.DeepCopy()
	next.Status.Phase = corev1.ClaimBound
	next.Status.AccessModes = slices.Clone(volume.Spec.AccessModes)
	if !becomes {
		// Capacity and attributes are the resizer's once the claim is bound: a file system may
		// be smaller than the device below it.
		return next, nil
	}
	capacity, ok := volume.Spec.Capacity[corev1.ResourceStorage]
	if !ok {
		return nil, fmt.Errorf("volume %q has no storage capacity", volume.Name)
	}
	if text, resized := volume.Annotations[volumes.PreResizeCapacity]; resized {
		if before, err := resource.ParseQuantity(text); err == nil {
			capacity = before
		}
		next.Status.Capacity = maps.Clone(claim.Status.Capacity)
		if next.Status.Capacity == nil {
			next.Status.Capacity = corev1.ResourceList{}
		}
		next.Status.Capacity[corev1.ResourceStorage] = capacity
	} else if has, ok := claim.Status.Capacity[corev1.ResourceStorage]; !ok || has.Cmp(capacity) != 0 {
		next.Status.Capacity = volume.Spec.Capacity.DeepCopy()
	}
	if claim.Status.Phase == corev1.ClaimPending {
		next.Status.CurrentVolumeAttributesClassName = nil
		if name := volume.Spec.VolumeAttributesClassName; name != nil {
			next.Status.CurrentVolumeAttributesClassName = new(*name)
		}
	}
	return next, nil
}

// unboundStatus returns a claim with a phase and without a volume.
func unboundStatus(claim *corev1.PersistentVolumeClaim, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
	next := claim.DeepCopy()
	next.Status.Phase = phase
	next.Status.AccessModes, next.Status.Capacity, next.Status.CurrentVolumeAttributesClassName = nil, nil, nil
	if equality.Semantic.DeepEqual(claim.Status, next.Status) {
		return nil
	}
	return next
}

// unboundVolume returns a volume that no claim has. A reference that a user wrote stays, without
// the UID.
// Source: k8s.io/kubernetes/pkg/controller/volume/persistentvolume, unbindVolume.
func unboundVolume(volume *corev1.PersistentVolume) *corev1.PersistentVolume {
	next := volume.DeepCopy()
	if _, ours := volume.Annotations[volumes.BoundByController]; ours {
		next.Spec.ClaimRef = nil
		delete(next.Annotations, volumes.BoundByController)
	} else {
		next.Spec.ClaimRef.UID = ""
	}
	return next
}

// annotate adds an annotation whose value does not matter.
func annotate(annotations *map[string]string, name string) {
	if _, has := (*annotations)[name]; has {
		return
	}
	if *annotations == nil {
		*annotations = map[string]string{}
	}
	(*annotations)[name] = "yes"
}
