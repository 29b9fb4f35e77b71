// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditionTaint returns the key of the taint that a condition calls for, or "".
// Source: k8s.io/kubernetes/pkg/controller/nodelifecycle,
// nodeConditionToTaintKeyStatusMap.
func conditionTaint(kind corev1.NodeConditionType, status corev1.ConditionStatus) string {
	if kind == corev1.NodeReady {
		switch status {
		case corev1.ConditionFalse:
			return corev1.TaintNodeNotReady
		case corev1.ConditionUnknown:
			return corev1.TaintNodeUnreachable
		default:
			return ""
		}
	}
	if status != corev1.ConditionTrue {
		return ""
	}
	switch kind {
	case corev1.NodeMemoryPressure:
		return corev1.TaintNodeMemoryPressure
	case corev1.NodeDiskPressure:
		return corev1.TaintNodeDiskPressure
	case corev1.NodePIDPressure:
		return corev1.TaintNodePIDPressure
	case corev1.NodeNetworkUnavailable:
		return corev1.TaintNodeNetworkUnavailable
	default:
		return ""
	}
}

// noSchedule reports whether a taint is one that this controller sets and lifts.
func noSchedule(t *corev1.Taint) bool {
	if t.Effect != corev1.TaintEffectNoSchedule {
		return false
	}
	switch t.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure,
		corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable, corev1.TaintNodeUnschedulable:
		return true
	}
	return false
}

// calledFor reports whether the node's state calls for the NoSchedule taint of a key.
func calledFor(node *corev1.Node, key string) bool {
	if key == corev1.TaintNodeUnschedulable {
		return node.Spec.Unschedulable
	}
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; conditionTaint(c.Type, c.Status) == key {
			return true
		}
	}
	return false
}

// hasTaint reports whether the node has a taint of key and effect, which together
// are a taint's identity.
func hasTaint(taints []corev1.Taint, key string, effect corev1.TaintEffect) bool {
	return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Key == key && t.Effect == effect })
}

// noExecute is what may be done about the NoExecute taints of a node. A node has one of
// them at most, the one that its Ready condition calls for.
type noExecute int

const (
	// holdNoExecute gives no node a taint that has none. A taint goes when the node
	// is ready, and becomes the other one when the condition does.
	holdNoExecute noExecute = iota
	// setNoExecute also gives the node the taint that its condition calls for.
	setNoExecute
	// liftNoExecute takes the taint away.
	liftNoExecute
)

// hasNoExecute reports whether one of the taints is a NoExecute taint of this
// controller.
func hasNoExecute(taints []corev1.Taint) bool {
	return hasTaint(taints, corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute) ||
		hasTaint(taints, corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)
}

// noExecuteKey returns the key of the NoExecute taint that the node should have, or
// "". known is false where nothing can be said: without a Ready condition, whatever
// taint there is stays.
func noExecuteKey(node *corev1.Node, mode noExecute) (key string, known bool) {
	ready := readyStatus(node)
	key = conditionTaint(corev1.NodeReady, ready)
	if mode == liftNoExecute || (mode == holdNoExecute && !hasNoExecute(node.Spec.Taints)) {
		key = ""
	}
	return key, ready != "" || mode == liftNoExecute
}

// taintsOf returns the taints that the node should have, and whether they are
// others than those it has. It allocates only if they are. The order of what stays
// is kept, new ones follow.
func taintsOf(node *corev1.Node, mode noExecute, now time.Time) (taints []corev1.Taint, changed bool) {
	taints = node.Spec.Taints
	noExecute, known := noExecuteKey(node, mode)
	unwanted := func(t corev1.Taint) bool {
		if noSchedule(&t) {
			return !calledFor(node, t.Key)
		}
		ours := t.Effect == corev1.TaintEffectNoExecute && (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable)
		return ours && known && t.Key != noExecute
	}
	if slices.ContainsFunc(taints, unwanted) {
		taints, changed = slices.DeleteFunc(slices.Clone(taints), unwanted), true
	}
	add := func(key string, effect corev1.TaintEffect) {
		if key == "" || hasTaint(taints, key, effect) {
			return
		}
		added := metav1.NewTime(now)
		taints = append(slices.Clip(taints), corev1.Taint{Key: key, Effect: effect, TimeAdded: &added})
		changed = true
	}
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		add(conditionTaint(c.Type, c.Status), corev1.TaintEffectNoSchedule)
	}
	if node.Spec.Unschedulable {
		add(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	}
	add(noExecute, corev1.TaintEffectNoExecute)
	return taints, changed
}
