// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/podstate"
)

// ClaimName returns the name of the claim of a volume of a Pod, or "" for a volume without a
// claim. The claim of a generic ephemeral volume is named after the Pod and the volume.
// Source: k8s.io/component-helpers/storage/ephemeral, VolumeClaimName.
func ClaimName(pod *corev1.Pod, v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return pod.Name + "-" + v.Name
	}
	return ""
}

// ClaimsOf returns the names of the claims of a Pod, each once, in the order of its volumes. They
// lie in the namespace of the Pod.
func ClaimsOf(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		if name := ClaimName(pod, &pod.Spec.Volumes[i]); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Uses reports whether a volume of a Pod is that claim. A claim with the name of an ephemeral
// volume's that the Pod does not own is another claim, which the Pod must not get.
// Source: k8s.io/component-helpers/storage/ephemeral, VolumeIsForPod.
func Uses(pod *corev1.Pod, v *corev1.Volume, claim *corev1.PersistentVolumeClaim) bool {
	if pod.Namespace != claim.Namespace || ClaimName(pod, v) != claim.Name {
		return false
	}
	return v.PersistentVolumeClaim != nil || metav1.IsControlledBy(claim, pod)
}

// Stopped reports whether nothing of a Pod runs any more, so that it does not use its claims: the
// Pod has ended, or it is being deleted and all its containers have stopped.
// Source: k8s.io/kubernetes/pkg/volume/util, IsPodTerminated.
func Stopped(pod *corev1.Pod) bool {
	if podstate.Ended(pod) {
		return true
	}
	running := func(s corev1.ContainerStatus) bool { return s.State.Terminated == nil && s.State.Waiting == nil }
	return pod.DeletionTimestamp != nil && !slices.ContainsFunc(slices.Concat(
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses), running)
}
