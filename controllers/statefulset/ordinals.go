// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/object"
)

// mostOrdinal is the largest ordinal that the name of a Pod may have: other programs read it as a
// number of 32 bits. The API server accepts a start and a size that go beyond it.
// Source: k8s.io/kubernetes/pkg/controller/statefulset, getParentNameAndOrdinal, which does not
// know the Pods beyond it again and creates them for ever.
const mostOrdinal = math.MaxInt32

// podName returns the name of the Pod of an ordinal.
func podName(set string, ordinal int) string { return set + "-" + strconv.Itoa(ordinal) }

// splitName splits the name of a Pod into that of a StatefulSet and an ordinal. It returns false
// for a name that [podName] does not make. "web-01" is such a name: the Pod of ordinal 1 is web-1.
//
// Source: k8s.io/kubernetes/pkg/controller/statefulset, getParentNameAndOrdinal, which takes
// web-01 for the Pod of ordinal 1.
func splitName(pod string) (set string, ordinal int, ok bool) {
	dash := strings.LastIndexByte(pod, '-')
	if dash < 1 {
		return "", 0, false
	}
	n, err := strconv.ParseUint(pod[dash+1:], 10, 32)
	if err != nil || n > mostOrdinal || podName(pod[:dash], int(n)) != pod {
		return "", 0, false
	}
	return pod[:dash], int(n), true
}

// isNamedAfter reports whether a Pod has a name that the Pods of a StatefulSet have.
func isNamedAfter(set *appsv1.StatefulSet) func(object.Meta) bool {
	return func(pod object.Meta) bool {
		name, _, ok := splitName(pod.Name)
		return ok && name == set.Name
	}
}

// ordinalOf returns the ordinal of a member.
func ordinalOf(pod *corev1.Pod) int {
	_, ordinal, _ := splitName(pod.Name)
	return ordinal
}

// ascending orders members by their ordinals.
func ascending(a, b *corev1.Pod) int { return cmp.Compare(ordinalOf(a), ordinalOf(b)) }

// size returns how many Pods a StatefulSet wants. The API server fills in 1.
func size(set *appsv1.StatefulSet) int {
	if set.Spec.Replicas == nil {
		return 1
	}
	return int(*set.Spec.Replicas)
}

// start returns the first ordinal.
func start(set *appsv1.StatefulSet) int {
	if set.Spec.Ordinals == nil {
		return 0
	}
	return int(set.Spec.Ordinals.Start)
}

// wants reports whether a StatefulSet wants a Pod of an ordinal.
func wants(set *appsv1.StatefulSet, ordinal int) bool {
	return ordinal >= start(set) && ordinal-start(set) < size(set) && ordinal <= mostOrdinal
}

// beyond returns how many Pods a StatefulSet wants whose ordinals would be too large.
func beyond(set *appsv1.StatefulSet) int { return max(0, start(set)+size(set)-1-mostOrdinal) }
