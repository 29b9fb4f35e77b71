// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller/podwriter"
)

const (
	// hashLabel has the hash of the revision that a Pod was created from.
	hashLabel = appsv1.DefaultDaemonSetUniqueLabelKey
	// generationLabel has the template generation that a Pod was created from. Pods of old
	// clusters have it alone.
	// Source: k8s.io/api/extensions/v1beta1, DaemonSetTemplateGenerationKey.
	generationLabel = "pod-template-generation"
)

// newPod returns a Pod of a DaemonSet for a node. The scheduler binds it: the Pod has an affinity
// that only this node matches, so that the scheduler sees its requests and may preempt for it.
// Source: k8s.io/kubernetes/pkg/controller/daemon/util, CreatePodTemplate.
func newPod(owner podwriter.Owner, template *corev1.PodTemplateSpec, now revision, node string) *corev1.Pod {
	pod := podwriter.FromTemplate(owner, template)
	pod.Labels = maps.Clone(pod.Labels)
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if now.generation != "" {
		pod.Labels[generationLabel] = now.generation
	}
	pod.Labels[hashLabel] = now.hash
	pod.Spec.Tolerations = withDaemonTolerations(&template.Spec)
	pod.Spec.Affinity = pinned(template.Spec.Affinity, node)
	return pod
}

// withDaemonTolerations returns the tolerations of a template, and those that each Pod of a
// DaemonSet has: it stays on a node that has troubles, and starts on one that is cordoned.
// Source: k8s.io/kubernetes/pkg/controller/daemon/util, AddOrUpdateDaemonPodTolerations.
func withDaemonTolerations(spec *corev1.PodSpec) []corev1.Toleration {
	all := slices.Clone(spec.Tolerations)
	add := func(key string, effect corev1.TaintEffect) {
		wanted := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
		if at := slices.IndexFunc(all, func(t corev1.Toleration) bool { return t.MatchToleration(&wanted) }); at >= 0 {
			all[at] = wanted // without an end
			return
		}
		all = append(all, wanted)
	}
	add(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)
	add(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)
	add(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	if spec.HostNetwork {
		add(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)
	}
	return all
}

// pinned returns an affinity to one node. It takes the place of the required node affinity of the
// template, which this node has met.
// Source: k8s.io/kubernetes/pkg/controller/daemon/util, ReplaceDaemonSetPodNodeNameNodeAffinity.
func pinned(affinity *corev1.Affinity, node string) *corev1.Affinity {
	pinned := affinity.DeepCopy()
	if pinned == nil {
		pinned = &corev1.Affinity{}
	}
	if pinned.NodeAffinity == nil {
		pinned.NodeAffinity = &corev1.NodeAffinity{}
	}
	pinned.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{
				Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
			}},
		}},
	}
	return pinned
}

// nodeOf returns the node of a Pod: the one that it is bound to, or else the one that its affinity
// pins it to. It returns "" for a Pod that waits for any node, which no DaemonSet has created.
// Source: k8s.io/kubernetes/pkg/controller/daemon/util, GetTargetNodeName.
func nodeOf(spec *corev1.PodSpec) string {
	if spec.NodeName != "" {
		return spec.NodeName
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return ""
	}
	required := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return ""
	}
	for _, term := range required.NodeSelectorTerms {
		for _, r := range term.MatchFields {
			if r.Key == metav1.ObjectNameField && r.Operator == corev1.NodeSelectorOpIn {
				if len(r.Values) != 1 {
					return ""
				}
				return r.Values[0]
			}
		}
	}
	return ""
}
