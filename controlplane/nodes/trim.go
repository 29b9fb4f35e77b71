// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import corev1 "k8s.io/api/core/v1"

// trim drops from a Pod what the simulation never reads: it is kept in memory for as long
// as the Pod lives. A write of the status is not harmed: the server takes over neither
// the spec nor, where none are sent, the managed fields. Stages can read every field, so
// if there are any the rest stays.
func (s *stages) trim(pod *corev1.Pod) {
	pod.ManagedFields = nil
	if len(s.pods) > 0 {
		return
	}
	spec := &pod.Spec
	pod.Spec = corev1.PodSpec{
		NodeName:              spec.NodeName,
		HostNetwork:           spec.HostNetwork,
		RestartPolicy:         spec.RestartPolicy,
		ActiveDeadlineSeconds: spec.ActiveDeadlineSeconds,
		ReadinessGates:        spec.ReadinessGates,
		ResourceClaims:        spec.ResourceClaims,
		SchedulingGroup:       spec.SchedulingGroup,
		Volumes:               trimVolumes(pod),
		InitContainers:        trimContainers(spec.InitContainers),
		Containers:            trimContainers(spec.Containers),
	}
	for i := range spec.EphemeralContainers {
		c := &spec.EphemeralContainers[i]
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: c.Name, Image: c.Image},
		})
	}
}

func trimContainers(containers []corev1.Container) []corev1.Container {
	if len(containers) == 0 {
		return nil
	}
	out := make([]corev1.Container, len(containers))
	for i := range containers {
		c := &containers[i]
		out[i] = corev1.Container{Name: c.Name, Image: c.Image, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
	}
	return out
}
