// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvcprotection

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/volumes"
)

// mounts reports whether one of the volumes of a Pod that count is that claim.
func mounts(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, count func(*corev1.Volume) bool) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return volumes.Uses(pod, &v, claim) && count(&v) })
}

// keeps reports whether a Pod keeps a claim from being removed: a kubelet may have its volume
// in use. A Pod that is being deleted with a grace period of 0 has been shut down, or was
// deleted by force; it need not wait for its own ephemeral claim, which may wait for it.
func keeps(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	shutDown := pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
	return pod.Spec.NodeName != "" && mounts(pod, claim, func(v *corev1.Volume) bool { return v.PersistentVolumeClaim != nil || !shutDown })
}

// uses reports whether a Pod that has not ended refers to a claim.
func uses(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	return !volumes.Stopped(pod) && mounts(pod, claim, func(*corev1.Volume) bool { return true })
}
