// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Allows reports whether a volume with the access modes that it has can be used in all those that
// a claim wants.
// Source: k8s.io/component-helpers/storage/volume, CheckAccessModes.
func Allows(has, wants []corev1.PersistentVolumeAccessMode) bool {
	return !slices.ContainsFunc(wants, func(mode corev1.PersistentVolumeAccessMode) bool { return !slices.Contains(has, mode) })
}

// SameMode reports whether a volume is what a claim wants: a file system or a block device.
// Source: k8s.io/component-helpers/storage/volume, CheckVolumeModeMismatches.
func SameMode(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	return ModeOf(claim.Spec.VolumeMode) == ModeOf(volume.Spec.VolumeMode)
}

// ModeOf returns the mode of a volume or of a claim. Objects from before there were modes are file
// systems.
func ModeOf(mode *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if mode == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *mode
}

// SameAttributes reports whether a volume has the VolumeAttributesClass that a claim wants.
func SameAttributes(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	return AttributesOf(claim.Spec.VolumeAttributesClassName) == AttributesOf(volume.Spec.VolumeAttributesClassName)
}

// AttributesOf returns the name of the VolumeAttributesClass of a volume or of a claim. No class
// and an empty name are the same.
func AttributesOf(name *string) string {
	if name == nil {
		return ""
	}
	return *name
}
