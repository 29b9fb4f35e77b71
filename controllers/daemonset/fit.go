// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// fit says whether a node fits the Pods of a DaemonSet. A Pod that runs stays on a node with a
// taint NoSchedule that it does not tolerate, and no new one is created there.
type fit struct {
	run  bool // a Pod is created on the node if there is none
	stay bool // a Pod that is on the node stays
}

// fitting decides which nodes fit a Pod template. It never changes, and is safe for concurrent
// use. To parse an affinity costs more than to compare it with a node, so it is parsed once.
type fitting struct {
	spec        corev1.PodSpec // the fields of the template that decide
	tolerations []corev1.Toleration
	affinity    nodeaffinity.RequiredNodeAffinity
}

func newFitting(template *corev1.PodTemplateSpec) *fitting {
	spec := &template.Spec
	return &fitting{
		spec: corev1.PodSpec{
			NodeName: spec.NodeName, NodeSelector: spec.NodeSelector, Affinity: spec.Affinity,
			Tolerations: spec.Tolerations, HostNetwork: spec.HostNetwork,
		},
		tolerations: withDaemonTolerations(spec),
		affinity:    nodeaffinity.NewRequiredNodeAffinity(spec.NodeSelector, spec.Affinity),
	}
}

// same reports whether another fitting decides alike.
func (f *fitting) same(other *fitting) bool { return equality.Semantic.DeepEqual(f.spec, other.spec) }

// of returns how a node fits. An affinity that cannot be parsed fits no node; the API server
// accepts none.
// Source: k8s.io/kubernetes/pkg/controller/daemon, NodeShouldRunDaemonPod.
func (f *fitting) of(node *corev1.Node) fit {
	if f.spec.NodeName != "" && f.spec.NodeName != node.Name {
		return fit{}
	}
	if matches, err := f.affinity.Match(node); err != nil || !matches {
		return fit{}
	}
	return fit{
		run:  f.tolerates(node.Spec.Taints, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute),
		stay: f.tolerates(node.Spec.Taints, corev1.TaintEffectNoExecute),
	}
}

// tolerates reports whether the Pods tolerate all taints of some effects.
func (f *fitting) tolerates(taints []corev1.Taint, effects ...corev1.TaintEffect) bool {
	for i := range taints {
		taint := &taints[i]
		tolerated := func(t corev1.Toleration) bool {
			// A server that does not compare numbers accepts no toleration that does.
			return t.ToleratesTaint(klog.Logger{}, taint, true)
		}
		if slices.Contains(effects, taint.Effect) && !slices.ContainsFunc(f.tolerations, tolerated) {
			return false
		}
	}
	return true
}
