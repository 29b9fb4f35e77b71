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
// Objects from before there were modes are file systems.
// Source: k8s.io/component-helpers/storage/volume, CheckVolumeModeMismatches.
func SameMode(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	return mode(claim.Spec.VolumeMode) == mode(volume.Spec.VolumeMode)
}

func mode(m *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if m == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *m
}

// SameAttributes reports whether a volume has the VolumeAttributesClass that a claim wants. No
// class and an empty name are the same.
func SameAttributes(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	return text(claim.Spec.VolumeAttributesClassName) == text(volume.Spec.VolumeAttributesClassName)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
