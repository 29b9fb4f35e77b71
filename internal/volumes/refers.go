// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package volumes

import corev1 "k8s.io/api/core/v1"

// Refers reports whether a volume refers to a claim. A volume that a user has reserved for a claim
// may name it without its UID: it then refers to any claim of the name.
// Source: k8s.io/component-helpers/storage/volume, IsVolumeBoundToClaim.
func Refers(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	ref := volume.Spec.ClaimRef
	return ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name && (ref.UID == "" || ref.UID == claim.UID)
}
