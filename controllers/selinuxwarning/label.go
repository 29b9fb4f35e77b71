// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selinuxwarning

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// trait is what the Pods that use one volume should have in common: the label that the volume is
// mounted with, "" for none, and the policy by which the label gets onto the files.
type trait struct {
	label  string
	policy corev1.PodSELinuxChangePolicy
}

// traitOf returns the trait of a Pod that uses a volume with a label. A Pod that has its files
// relabelled one by one mounts the volume without a label, and a Pod without a label is such a one.
// Source: k8s.io/kubernetes/pkg/volume/util, GetMountSELinuxLabel, and syncVolume of upstream's
// controller.
func traitOf(pod *corev1.Pod, label string) trait {
	policy := corev1.SELinuxChangePolicyMountOption
	if sc := pod.Spec.SecurityContext; sc != nil && sc.SELinuxChangePolicy != nil {
		policy = *sc.SELinuxChangePolicy
	}
	if label == "" || policy == corev1.SELinuxChangePolicyRecursive {
		return trait{label: "", policy: corev1.SELinuxChangePolicyRecursive}
	}
	return trait{label: label, policy: policy}
}

// labelOf returns the label of options. The nodes have defaults for the parts that are missing,
// which the controller cannot read: these parts stay empty.
// Source: k8s.io/kubernetes/pkg/controller/volume/selinuxwarning/translator.
func labelOf(o *corev1.SELinuxOptions) string {
	if *o == (corev1.SELinuxOptions{}) {
		return ""
	}
	return strings.Join([]string{o.User, o.Role, o.Type, o.Level}, ":")
}

// Parts of a label. The level is the last one, and may have colons in it.
const (
	parts = 4
	level = parts - 1
)

// labelsConflict reports whether two labels cannot be the same one on a node. An empty user, role
// or type may become any. The level has no default, so it must be the same.
// Source: k8s.io/kubernetes/pkg/controller/volume/selinuxwarning/translator, Conflicts.
func labelsConflict(a, b string) bool {
	one, other := partsOf(a), partsOf(b)
	for i := range level {
		if one[i] != other[i] && one[i] != "" && other[i] != "" {
			return true
		}
	}
	return one[level] != other[level]
}

// partsOf returns the user, the role, the type and the level of a label.
func partsOf(label string) (of [parts]string) {
	copy(of[:], strings.SplitN(label, ":", parts))
	return of
}

// labelsByVolume returns the labels with which the containers of a Pod mount each of its volumes,
// each label once. A volume that no container mounts is not in the result. A container without
// options adds no label.
// Source: k8s.io/kubernetes/pkg/volume/util, GetPodVolumeNames.
func labelsByVolume(pod *corev1.Pod) map[string][]string {
	labels := map[string][]string{}
	visit := func(own *corev1.SecurityContext, mounts []corev1.VolumeMount) {
		o := effective(pod, own)
		for _, mount := range mounts {
			known := labels[mount.Name]
			if o != nil && !slices.Contains(known, labelOf(o)) {
				known = append(known, labelOf(o))
			}
			labels[mount.Name] = known
		}
	}
	for i := range pod.Spec.InitContainers {
		visit(pod.Spec.InitContainers[i].SecurityContext, pod.Spec.InitContainers[i].VolumeMounts)
	}
	for i := range pod.Spec.Containers {
		visit(pod.Spec.Containers[i].SecurityContext, pod.Spec.Containers[i].VolumeMounts)
	}
	for i := range pod.Spec.EphemeralContainers {
		visit(pod.Spec.EphemeralContainers[i].SecurityContext, pod.Spec.EphemeralContainers[i].VolumeMounts)
	}
	return labels
}

// effective returns the options of a container: its own, or those of the Pod, or nil.
func effective(pod *corev1.Pod, own *corev1.SecurityContext) *corev1.SELinuxOptions {
	if own != nil && own.SELinuxOptions != nil {
		return own.SELinuxOptions
	}
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	return pod.Spec.SecurityContext.SELinuxOptions
}
