// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"cmp"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/volumes"
)

// Why a volume is not for a claim, in upstream's words.
// Source: k8s.io/kubernetes/pkg/controller/volume/persistentvolume, checkVolumeSatisfyClaim.
var (
	errTooSmall        = errors.New("requested PV is too small")
	errOtherClass      = errors.New("storageClassName does not match")
	errOtherAttributes = errors.New("volumeAttributesClassName does not match")
	errOtherMode       = errors.New("incompatible volumeMode")
	errOtherAccess     = errors.New("incompatible accessMode")
)

// fits returns why a volume that was chosen by a user does not satisfy a claim, or nil. The class
// counts if the claim names the volume; a volume that names the claim may be of any class.
func fits(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	switch {
	case volume.DeletionTimestamp != nil:
		return &deletedVolumeError{volume.Name}
	case size(volume.Spec.Capacity) < size(claim.Spec.Resources.Requests):
		return errTooSmall
	case volumes.ClassOfVolume(volume) != volumes.ClassOf(claim) && !volumes.Refers(volume, claim):
		return errOtherClass
	case !volumes.SameAttributes(claim, volume):
		return errOtherAttributes
	case !volumes.SameMode(claim, volume):
		return errOtherMode
	case !volumes.Allows(volume.Spec.AccessModes, claim.Spec.AccessModes):
		return errOtherAccess
	}
	return nil
}

// deletedVolumeError says that a volume is being deleted.
type deletedVolumeError struct{ name string }

func (e *deletedVolumeError) Error() string {
	return "the volume is marked for deletion \"" + e.name + "\""
}

// size returns the bytes of storage that a list has.
func size(list corev1.ResourceList) int64 {
	quantity := list[corev1.ResourceStorage]
	return quantity.Value()
}

// reserved returns the volume that refers to a claim and satisfies it: one that a user has
// reserved for it, that the scheduler has chosen, or that was made for it. Of several, the one
// that knows the UID of the claim comes first, then the closest fit.
func reserved(refers []*corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	var suitable []*corev1.PersistentVolume
	for _, volume := range refers {
		if volumes.Refers(volume, claim) && fits(volume, claim) == nil {
			suitable = append(suitable, volume)
		}
	}
	if len(suitable) == 0 {
		return nil
	}
	known := func(volume *corev1.PersistentVolume) int {
		if volume.Spec.ClaimRef.UID != "" {
			return 0
		}
		return 1
	}
	return slices.MinFunc(suitable, func(a, b *corev1.PersistentVolume) int {
		return cmp.Or(
			cmp.Compare(known(a), known(b)),
			cmp.Compare(len(a.Spec.AccessModes), len(b.Spec.AccessModes)),
			cmp.Compare(size(a.Spec.Capacity), size(b.Spec.Capacity)),
			cmp.Compare(a.Name, b.Name),
		)
	})
}

// isFree reports whether a volume may be given to any claim that it satisfies.
func isFree(volume *corev1.PersistentVolume) bool {
	return volume.Spec.ClaimRef == nil && volume.DeletionTimestamp == nil && volume.Status.Phase == corev1.VolumeAvailable
}

// isWaiting reports whether a claim looks for a volume.
func isWaiting(claim *corev1.PersistentVolumeClaim) bool {
	_, bound := claim.Annotations[volumes.BindCompleted]
	return !bound && claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil
}
