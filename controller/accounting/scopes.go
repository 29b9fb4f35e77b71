// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package accounting

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation/field"

	helper "k8s.io/component-helpers/resource"
)

// scope is a condition of a quota: it counts the objects that all its scopes match.
type scope struct {
	name corev1.ResourceQuotaScope
	// classes selects by the name of a class; nil is any class. It has the scope's name as key.
	classes labels.Selector
}

// operators are those of a scope selector.
var operators = map[corev1.ScopeSelectorOperator]selection.Operator{
	corev1.ScopeSelectorOpIn:           selection.In,
	corev1.ScopeSelectorOpNotIn:        selection.NotIn,
	corev1.ScopeSelectorOpExists:       selection.Exists,
	corev1.ScopeSelectorOpDoesNotExist: selection.DoesNotExist,
}

// scopesOf reads the scopes of a quota. Only the scopes of classes have operators that matter.
func scopesOf(q *corev1.ResourceQuota) ([]scope, error) {
	var scopes []scope
	for _, name := range q.Spec.Scopes {
		scopes = append(scopes, scope{name: name})
	}
	if q.Spec.ScopeSelector == nil {
		return scopes, nil
	}
	for i, required := range q.Spec.ScopeSelector.MatchExpressions {
		s := scope{name: required.ScopeName}
		if byClass(s.name) && required.Operator != corev1.ScopeSelectorOpExists {
			path := field.NewPath("spec", "scopeSelector", "matchExpressions").Index(i)
			operator, ok := operators[required.Operator]
			if !ok {
				return nil, fmt.Errorf("%s is %q; write In, NotIn, Exists or DoesNotExist", path.Child("operator"), required.Operator)
			}
			requirement, err := labels.NewRequirement(string(s.name), operator, required.Values)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			s.classes = labels.NewSelector().Add(*requirement)
		}
		scopes = append(scopes, s)
	}
	return scopes, nil
}

func byClass(name corev1.ResourceQuotaScope) bool {
	return name == corev1.ResourceQuotaScopePriorityClass || name == corev1.ResourceQuotaScopeVolumeAttributesClass
}

// hasClass reports whether one of an object's classes is selected. Empty names are no classes.
func (s scope) hasClass(classes ...string) bool {
	classes = slices.DeleteFunc(classes, func(class string) bool { return class == "" })
	if s.classes == nil {
		return len(classes) > 0
	}
	if len(classes) == 0 {
		return s.classes.Matches(labels.Set{})
	}
	return slices.ContainsFunc(classes, func(class string) bool { return s.classes.Matches(labels.Set{string(s.name): class}) })
}

// matchesPod reports whether a Pod is in the scope.
func (s scope) matchesPod(pod *corev1.Pod) bool {
	switch s.name {
	case corev1.ResourceQuotaScopeTerminating:
		return hasDeadline(pod)
	case corev1.ResourceQuotaScopeNotTerminating:
		return !hasDeadline(pod)
	case corev1.ResourceQuotaScopeBestEffort:
		return isBestEffort(pod)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !isBestEffort(pod)
	case corev1.ResourceQuotaScopePriorityClass:
		return s.hasClass(pod.Spec.PriorityClassName)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return reachesOtherNamespaces(pod.Spec.Affinity)
	case corev1.ResourceQuotaScopeVolumeAttributesClass: // of claims
	}
	return false
}

// matchesVolumeClaim reports whether a PersistentVolumeClaim is in the scope: by the class that
// it has, the one that it asks for, and the one that is being applied.
func (s scope) matchesVolumeClaim(c *corev1.PersistentVolumeClaim) bool {
	if s.name != corev1.ResourceQuotaScopeVolumeAttributesClass {
		return false
	}
	var classes []string
	for _, class := range []*string{c.Spec.VolumeAttributesClassName, c.Status.CurrentVolumeAttributesClassName} {
		if class != nil {
			classes = append(classes, *class)
		}
	}
	if c.Status.ModifyVolumeStatus != nil {
		classes = append(classes, c.Status.ModifyVolumeStatus.TargetVolumeAttributesClassName)
	}
	return s.hasClass(classes...)
}

// hasDeadline reports whether a Pod ends by itself.
func hasDeadline(pod *corev1.Pod) bool {
	deadline := pod.Spec.ActiveDeadlineSeconds
	return deadline != nil && *deadline >= 0
}

// isBestEffort reports whether a Pod has no CPU and memory of its own.
// Source: k8s.io/kubernetes/pkg/apis/core/v1/helper/qos, GetPodQOS.
func isBestEffort(pod *corev1.Pod) bool {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass == corev1.PodQOSBestEffort
	}
	if helper.IsPodLevelResourcesSet(pod) {
		return asksForNothing(*pod.Spec.Resources)
	}
	asks := func(c corev1.Container) bool { return !asksForNothing(c.Resources) }
	return !slices.ContainsFunc(pod.Spec.InitContainers, asks) && !slices.ContainsFunc(pod.Spec.Containers, asks)
}

func asksForNothing(r corev1.ResourceRequirements) bool {
	isZero := func(q resource.Quantity) bool { return q.IsZero() }
	return isZero(r.Requests[corev1.ResourceCPU]) && isZero(r.Requests[corev1.ResourceMemory]) &&
		isZero(r.Limits[corev1.ResourceCPU]) && isZero(r.Limits[corev1.ResourceMemory])
}

// reachesOtherNamespaces reports whether an affinity to Pods, or an anti-affinity, names
// namespaces.
func reachesOtherNamespaces(a *corev1.Affinity) bool {
	if a == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	var weighted []corev1.WeightedPodAffinityTerm
	if pods := a.PodAffinity; pods != nil {
		terms = append(terms, pods.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, pods.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if pods := a.PodAntiAffinity; pods != nil {
		terms = append(terms, pods.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, pods.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	for i := range weighted {
		terms = append(terms, weighted[i].PodAffinityTerm)
	}
	return slices.ContainsFunc(terms, func(term corev1.PodAffinityTerm) bool {
		return len(term.Namespaces) > 0 || term.NamespaceSelector != nil
	})
}
