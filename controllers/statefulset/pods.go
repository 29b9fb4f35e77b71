// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"maps"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controller/podwriter"
	"github.com/setpoint-io/setpoint/internal/podstate"
)

// newPod returns the Pod of an ordinal, made of the template of a revision. Its name, its labels
// and its claims are its identity, which each later Pod of the ordinal has again. The host name
// and the subdomain cannot change after the creation.
//
// Source: k8s.io/kubernetes/pkg/controller/statefulset, newStatefulSetPod.
func newPod(set *appsv1.StatefulSet, of version, ordinal int) *corev1.Pod {
	pod := podwriter.FromTemplate(podwriter.Owner{Object: set, Kind: kind}, of.template)
	pod.Name = podName(set.Name, ordinal)
	labels := make(map[string]string, len(pod.Labels)+3)
	maps.Copy(labels, pod.Labels)
	maps.Copy(labels, identity(pod.Name, ordinal))
	labels[appsv1.StatefulSetRevisionLabel] = of.name
	pod.Labels = labels
	pod.Spec.Hostname = pod.Name
	pod.Spec.Subdomain = set.Spec.ServiceName
	pod.Spec.Volumes = volumes(set, ordinal, pod.Spec.Volumes)
	return pod
}

// identity returns the labels by which users find the Pod of an ordinal.
func identity(name string, ordinal int) map[string]string {
	return map[string]string{
		appsv1.StatefulSetPodNameLabel: name,
		appsv1.PodIndexLabel:           strconv.Itoa(ordinal),
	}
}

// volumes returns the volumes of a Pod: those of its claims, and those of the template that no
// claim template has the name of.
func volumes(set *appsv1.StatefulSet, ordinal int, ofTemplate []corev1.Volume) []corev1.Volume {
	var all []corev1.Volume
	claimed := map[string]bool{}
	for _, template := range claimTemplates(set) {
		claimed[template.Name] = true
		all = append(all, corev1.Volume{Name: template.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(set, template.Name, ordinal)},
		}})
	}
	for _, volume := range ofTemplate {
		if !claimed[volume.Name] {
			all = append(all, volume)
		}
	}
	return all
}

// lacksVolume returns the name of a claim that a member should use and does not. The volumes of a
// Pod cannot change, so that Pod was not made from this StatefulSet.
func lacksVolume(set *appsv1.StatefulSet, pod *corev1.Pod) (claim string, lacks bool) {
	used := map[string]string{}
	for _, volume := range pod.Spec.Volumes {
		if source := volume.PersistentVolumeClaim; source != nil {
			used[volume.Name] = source.ClaimName
		}
	}
	for _, template := range claimTemplates(set) {
		if name := claimName(set, template.Name, ordinalOf(pod)); used[template.Name] != name {
			return name, true
		}
	}
	return "", false
}

// revisionOf returns the name of the revision that a Pod was made from.
func revisionOf(pod *corev1.Pod) string { return pod.Labels[appsv1.StatefulSetRevisionLabel] }

// terminating reports whether a Pod is being deleted.
func terminating(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

// runningAndReady reports whether a Pod counts as ready.
func runningAndReady(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && podstate.Ready(pod)
}

// availableIn returns how long it takes until a Pod is available, 0 if it is, and false if it is
// not ready.
func availableIn(set *appsv1.StatefulSet, pod *corev1.Pod, now time.Time) (time.Duration, bool) {
	since, ready := podstate.ReadySince(pod)
	minReady := time.Duration(set.Spec.MinReadySeconds) * time.Second
	switch {
	case !ready:
		return 0, false
	case minReady == 0:
		return 0, true
	case since.IsZero():
		return minReady, true // a later state may have the time
	}
	return max(since.Add(minReady).Sub(now), 0), true
}

// available reports whether a Pod is available, terminating or not.
func available(set *appsv1.StatefulSet, pod *corev1.Pod, now time.Time) bool {
	left, ready := availableIn(set, pod, now)
	return ready && left == 0
}
