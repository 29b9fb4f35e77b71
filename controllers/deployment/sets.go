// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// size returns how many Pods a set is to have.
func size(set *appsv1.ReplicaSet) int32 { return value(set.Spec.Replicas) }

// value returns a number of replicas. The API server fills in 1 where none is
// given.
func value(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// total adds up a number of all sets.
func total(sets []*appsv1.ReplicaSet, of func(*appsv1.ReplicaSet) int32) int32 {
	var sum int32
	for _, set := range sets {
		sum += of(set)
	}
	return sum
}

// active returns the sets that are to have Pods.
func active(sets []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	var list []*appsv1.ReplicaSet
	for _, set := range sets {
		if size(set) > 0 {
			list = append(list, set)
		}
	}
	return list
}

// steady reports whether the controller of a set has seen how many Pods it is to have,
// and has no more than that. Only then are the set's numbers a bound on its Pods: after a
// scale-down that its controller has not observed yet, more of them are alive than the
// set wants.
func steady(set *appsv1.ReplicaSet) bool {
	return set.Status.ObservedGeneration >= set.Generation && set.Status.Replicas <= size(set)
}

func allSteady(sets []*appsv1.ReplicaSet) bool {
	return !slices.ContainsFunc(sets, func(set *appsv1.ReplicaSet) bool { return !steady(set) })
}

// byAge orders sets from old to new; the name decides between two of one second.
func byAge(a, b *appsv1.ReplicaSet) int {
	if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
		return order
	}
	return strings.Compare(a.Name, b.Name)
}

// split separates the set that has the Deployment's template from the others, which it
// returns from old to new. Where several have the template, as after an upgrade that
// changed what a template hashes to, the oldest counts.
func split(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) (current *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) {
	for _, set := range slices.SortedFunc(slices.Values(sets), byAge) {
		if current == nil && sameTemplate(&set.Spec.Template, &d.Spec.Template) {
			current = set
			continue
		}
		old = append(old, set)
	}
	return current, old
}

// sameTemplate compares templates without the label that a ReplicaSet adds. The
// hash itself says nothing: it changes with the API's types.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	x, y := *a, *b
	x.Labels, y.Labels = withoutHash(a.Labels), withoutHash(b.Labels)
	return apiequality.Semantic.DeepEqual(&x, &y)
}

func withoutHash(labels map[string]string) map[string]string {
	if _, has := labels[appsv1.DefaultDeploymentUniqueLabelKey]; !has {
		return labels
	}
	labels = maps.Clone(labels)
	delete(labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return labels
}
