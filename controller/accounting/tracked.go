// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package accounting

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Limited returns the resources that the quota limits, sorted. The slice is read-only.
func (q Quota) Limited() []corev1.ResourceName { return q.limited }

// Kinds returns the kinds whose objects can count for the quota, those in names of the form
// "count/…" among them, whether a server has them or not. They are in a fixed order.
func (q Quota) Kinds(around Around) []schema.GroupResource {
	found := map[schema.GroupResource]bool{}
	for _, kind := range []schema.GroupResource{Pods, Services, PersistentVolumeClaims, ResourceClaims} {
		found[kind] = len(q.Tracks(kind, around)) > 0
	}
	for _, name := range q.limited {
		if kind, ok := kindOf(name); ok {
			found[kind] = true
		}
	}
	maps.DeleteFunc(found, func(_ schema.GroupResource, counts bool) bool { return !counts })
	return slices.SortedFunc(maps.Keys(found), func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
}

// kindOf returns the kind whose number a resource of quotas is.
func kindOf(name corev1.ResourceName) (schema.GroupResource, bool) {
	if kind, ok := strings.CutPrefix(string(name), "count/"); ok {
		return schema.ParseGroupResource(kind), true
	}
	for kind, alias := range aliases {
		if name == alias {
			return kind, true
		}
	}
	return schema.GroupResource{}, false
}

// Uniform returns what each object of a kind counts for, if that is the same for all objects.
// Then nothing but their metadata is needed. The caller must not change the list.
func (q Quota) Uniform(kind schema.GroupResource, around Around) (used corev1.ResourceList, ok bool) {
	all := Object(kind)
	switch kind {
	case Services:
		all[corev1.ResourceServices] = number(1)
	case PersistentVolumeClaims:
		all[corev1.ResourcePersistentVolumeClaims] = number(1)
	}
	tracked := q.Tracks(kind, around)
	for _, name := range tracked {
		if _, same := all[name]; !same {
			return nil, false
		}
	}
	if len(q.scopes) > 0 {
		// Only Pods and PersistentVolumeClaims can be in a scope.
		return nil, kind != Pods && kind != PersistentVolumeClaims
	}
	maps.DeleteFunc(all, func(name corev1.ResourceName, _ resource.Quantity) bool { return !slices.Contains(tracked, name) })
	return all, true
}

// OfDevices returns the resources that depend on the DeviceClasses of the cluster, and on which
// ResourceClaims stand for which Pods: requests of extended resources.
func (q Quota) OfDevices() (names []corev1.ResourceName) {
	for _, name := range q.limited {
		if isExtendedRequest(name) {
			names = append(names, name)
		}
	}
	return names
}
