// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvcprotection

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/podstate"
)

// claimOf returns the name of the claim of a volume, "" if it has none.
// Source of the name of a generic ephemeral volume's:
// k8s.io/component-helpers/storage/ephemeral, VolumeClaimName.
func claimOf(pod *corev1.Pod, v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return pod.Name + "-" + v.Name
	}
	return ""
}

// claimsOf returns the names of the claims of a Pod.
func claimsOf(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		if name := claimOf(pod, &pod.Spec.Volumes[i]); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// mounts reports whether a volume of a Pod is that claim. A claim with the name of an
// ephemeral volume's that the Pod does not own is another claim.
func mounts(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, count func(*corev1.Volume) bool) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		if claimOf(pod, &v) != claim.Name || v.PersistentVolumeClaim == nil && !metav1.IsControlledBy(claim, pod) {
			return false
		}
		return count(&v)
	})
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
	return !terminated(pod) && mounts(pod, claim, func(*corev1.Volume) bool { return true })
}

// terminated reports whether nothing of a Pod runs any more.
// Source: k8s.io/kubernetes/pkg/volume/util, IsPodTerminated.
func terminated(pod *corev1.Pod) bool {
	if podstate.Ended(pod) {
		return true
	}
	running := func(s corev1.ContainerStatus) bool { return s.State.Terminated == nil && s.State.Waiting == nil }
	return pod.DeletionTimestamp != nil && !slices.ContainsFunc(slices.Concat(
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses), running)
}
