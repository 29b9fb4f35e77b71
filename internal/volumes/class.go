// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Annotations that mark a StorageClass as the default one.
// Source: k8s.io/kubernetes/pkg/volume/util.
const (
	IsDefaultClass     = "storageclass.kubernetes.io/is-default-class"
	betaIsDefaultClass = "storageclass.beta.kubernetes.io/is-default-class"
)

// ClassOf returns the name of the class of a claim. It is empty for a claim without a class, and
// for one that asks for volumes without a class; [HasClass] distinguishes them.
// Source: k8s.io/component-helpers/storage/volume, GetPersistentVolumeClaimClass.
func ClassOf(claim *corev1.PersistentVolumeClaim) string {
	if class, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return class
	}
	if claim.Spec.StorageClassName != nil {
		return *claim.Spec.StorageClassName
	}
	return ""
}

// HasClass reports whether a claim says of which class it is, be it of none. A claim that does
// not say gets the default class.
// Source: k8s.io/component-helpers/storage/volume, PersistentVolumeClaimHasClass.
func HasClass(claim *corev1.PersistentVolumeClaim) bool {
	_, beta := claim.Annotations[corev1.BetaStorageClassAnnotation]
	return beta || claim.Spec.StorageClassName != nil
}

// ClassOfVolume returns the name of the class of a volume, which may be empty.
// Source: k8s.io/component-helpers/storage/volume, GetPersistentVolumeClass.
func ClassOfVolume(volume *corev1.PersistentVolume) string {
	if class, ok := volume.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return class
	}
	return volume.Spec.StorageClassName
}

// IsDefault reports whether a class is marked as the default one.
func IsDefault(class *storagev1.StorageClass) bool {
	return class.Annotations[IsDefaultClass] == "true" || class.Annotations[betaIsDefaultClass] == "true"
}

// DefaultClass returns the newest of the classes that are marked as the default one, the first by
// name of several of the same second, or nil. Admission chooses the same.
// Source: k8s.io/kubernetes/pkg/volume/util, GetDefaultClass.
func DefaultClass(classes []*storagev1.StorageClass) *storagev1.StorageClass {
	marked := slices.DeleteFunc(slices.Clone(classes), func(class *storagev1.StorageClass) bool { return !IsDefault(class) })
	if len(marked) == 0 {
		return nil
	}
	return slices.MinFunc(marked, func(a, b *storagev1.StorageClass) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// WaitsForConsumer reports whether the volumes of a class are chosen or made when a Pod needs
// them, and not before.
func WaitsForConsumer(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}
