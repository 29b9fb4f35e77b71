// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package accounting

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Quota is what a ResourceQuota counts. It does not change.
type Quota struct {
	limited []corev1.ResourceName
	scopes  []scope
}

// NewQuota reads a ResourceQuota. The error names a scope that cannot be read and says what to
// write. The API server refuses such quotas.
func NewQuota(q *corev1.ResourceQuota) (Quota, error) {
	scopes, err := scopesOf(q)
	if err != nil {
		return Quota{}, fmt.Errorf("reading the scopes of ResourceQuota %s/%s: %w", q.Namespace, q.Name, err)
	}
	return Quota{limited: slices.Sorted(maps.Keys(q.Spec.Hard)), scopes: scopes}, nil
}

// Around is what a charge depends on besides the object. Devices are those of the cluster's
// DeviceClasses; without the functions there are none.
type Around struct {
	Now time.Time
	// ExtendedResource returns the extended resource of a device class, "" for none.
	ExtendedResource func(class string) string
	// HasDeviceClass reports whether a device class has an extended resource of this name.
	HasDeviceClass func(resource string) bool
	// PodOf returns the Pod that a claim stands for, see [StandsFor]; nil for none.
	PodOf func(*resourcev1.ResourceClaim) *corev1.Pod
}

func (a Around) extended(class string) string {
	if a.ExtendedResource == nil {
		return ""
	}
	return a.ExtendedResource(class)
}

// Tracks returns the resources of the quota that objects of a kind can count for, sorted. If
// there are none, the controller need not watch the kind for this quota.
func (q Quota) Tracks(kind schema.GroupResource, around Around) []corev1.ResourceName {
	var of func(corev1.ResourceName) bool
	switch kind {
	case Pods:
		of = isOfPods
	case Services:
		of = keyOf(Service(&corev1.Service{}))
	case PersistentVolumeClaims:
		of = isOfVolumeClaims
	case ResourceClaims:
		of = func(name corev1.ResourceName) bool { return isOfResourceClaims(name, around) }
	default:
		of = keyOf(Object(kind))
	}
	return slices.DeleteFunc(slices.Clone(q.limited), func(name corev1.ResourceName) bool { return !of(name) })
}

// keyOf returns a function that reports whether a list has a resource.
func keyOf(list corev1.ResourceList) func(corev1.ResourceName) bool {
	return func(name corev1.ResourceName) bool {
		_, ok := list[name]
		return ok
	}
}

// Charge is what an object counts for in a quota.
type Charge struct {
	// Used has the resources that the quota limits; nil if the object does not count.
	Used corev1.ResourceList
	// Until is the last moment for which Used holds, zero if time does not change it.
	Until time.Time
}

// Charge returns what an object counts for. An object of a kind that counts for more than its
// number must have the Go type of the kind in k8s.io/api. Of other objects nothing is read, so
// they may be nil. around must be the same for all objects of a sum, except for the time.
func (q Quota) Charge(kind schema.GroupResource, o any, around Around) (Charge, error) {
	if len(q.Tracks(kind, around)) == 0 {
		return Charge{}, nil
	}
	charge, in, err := q.of(kind, o, around)
	if err != nil || !in {
		return Charge{}, err
	}
	maps.DeleteFunc(charge.Used, func(name corev1.ResourceName, _ resource.Quantity) bool {
		_, limited := slices.BinarySearch(q.limited, name)
		return !limited
	})
	return charge, nil
}

// of returns what an object counts for in all quotas, and whether it is in the quota's scopes.
func (q Quota) of(kind schema.GroupResource, o any, around Around) (Charge, bool, error) {
	switch o := o.(type) {
	case *corev1.Pod:
		if kind == Pods {
			used, until := Pod(o, around.Now)
			return Charge{used, until}, q.inAll(func(s scope) bool { return s.matchesPod(o) }), nil
		}
	case *corev1.PersistentVolumeClaim:
		if kind == PersistentVolumeClaims {
			return Charge{Used: PersistentVolumeClaim(o)}, q.inAll(func(s scope) bool { return s.matchesVolumeClaim(o) }), nil
		}
	case *corev1.Service:
		if kind == Services {
			return Charge{Used: Service(o)}, len(q.scopes) == 0, nil
		}
	case *resourcev1.ResourceClaim:
		if kind == ResourceClaims {
			return around.resourceClaim(o), len(q.scopes) == 0, nil
		}
	}
	if slices.Contains([]schema.GroupResource{Pods, Services, PersistentVolumeClaims, ResourceClaims}, kind) {
		return Charge{}, false, fmt.Errorf("counting an object of %s: it is a %T", kind, o)
	}
	return Charge{Used: Object(kind)}, len(q.scopes) == 0, nil
}

func (q Quota) inAll(matches func(scope) bool) bool {
	return !slices.ContainsFunc(q.scopes, func(s scope) bool { return !matches(s) })
}

// resourceClaim returns the charge of a claim. What its Pod counts for can change with time.
func (a Around) resourceClaim(c *resourcev1.ResourceClaim) Charge {
	var pod corev1.ResourceList
	var until time.Time
	if a.PodOf != nil {
		if of := a.PodOf(c); of != nil {
			pod, until = Pod(of, a.Now)
		}
	}
	return Charge{ResourceClaim(c, pod, a.extended), until}
}
