// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package accounting

import (
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	helper "k8s.io/component-helpers/resource"

	"github.com/setpoint-io/setpoint/internal/seconds"
)

// Pod returns what a Pod counts for at a time. A Pod that has ended, and one that is still
// there although its grace period is over, counts for "count/pods" alone. until is the last
// moment for which the result holds, zero if time does not change it.
//
// Resources are the largest of what the spec asks for, what the node has allocated and what is
// in effect, so that a resize is counted until it is done. Overhead is included.
func Pod(pod *corev1.Pod, now time.Time) (used corev1.ResourceList, until time.Time) {
	used = corev1.ResourceList{CountName(Pods): number(1)}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return used, time.Time{}
	}
	if pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil {
		until = pod.DeletionTimestamp.Add(seconds.Duration(*pod.DeletionGracePeriodSeconds))
		if now.After(until) {
			return used, time.Time{}
		}
	}
	requests, limits := requirements(pod)
	maps.Copy(used, compute(requests, limits))
	return used, until
}

// requirements returns what a Pod requests and may use in all.
func requirements(pod *corev1.Pod) (requests, limits corev1.ResourceList) {
	if pod.Spec.Resources != nil && pod.Spec.Overhead != nil {
		// The helper adds the overhead to the Pod's own quantities, of which those that are
		// larger than an int64 would change.
		copied := *pod
		copied.Spec.Resources = pod.Spec.Resources.DeepCopy()
		pod = &copied
	}
	options := helper.PodResourcesOptions{UseStatusResources: true}
	requests = helper.PodRequests(pod, options)
	return requests, helper.PodLimits(pod, options)
}

// compute returns the resources of quotas that requests and limits count for.
// Source: k8s.io/kubernetes/pkg/quota/v1/evaluator/core, podComputeUsageHelper.
func compute(requests, limits corev1.ResourceList) corev1.ResourceList {
	used := corev1.ResourceList{corev1.ResourcePods: number(1)}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if request, ok := requests[name]; ok {
			used[name] = request
			used[requested(name)] = request
		}
		if limit, ok := limits[name]; ok {
			used["limits."+name] = limit
		}
	}
	for name, request := range requests {
		switch {
		case strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			used[name] = request
			used[requested(name)] = request
		case isExtended(name):
			used[requested(name)] = request
		}
	}
	return used
}

// requested returns the resource of quotas that is the requests of a resource.
func requested(name corev1.ResourceName) corev1.ResourceName {
	return corev1.DefaultResourceRequestsPrefix + name
}

// isNative reports whether Kubernetes has given a resource its name.
// Source: k8s.io/kubernetes/pkg/apis/core/v1/helper, IsNativeResource.
func isNative(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// isExtended reports whether containers request a resource from a device plugin or by a device
// class.
// Source: k8s.io/kubernetes/pkg/scheduler/util, IsDRAExtendedResourceName.
func isExtended(name corev1.ResourceName) bool {
	if strings.HasPrefix(string(name), resourcev1.ResourceDeviceClassPrefix) {
		return true
	}
	return !isNative(name) && !strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(string(requested(name)))) == 0
}

// podResources are the resources that Pods count for under fixed names.
// Source: k8s.io/kubernetes/pkg/quota/v1/evaluator/core.
var podResources = map[corev1.ResourceName]bool{
	CountName(Pods):     true,
	corev1.ResourcePods: true,

	corev1.ResourceCPU: true, corev1.ResourceMemory: true, corev1.ResourceEphemeralStorage: true,
	corev1.ResourceRequestsCPU: true, corev1.ResourceRequestsMemory: true, corev1.ResourceRequestsEphemeralStorage: true,
	corev1.ResourceLimitsCPU: true, corev1.ResourceLimitsMemory: true, corev1.ResourceLimitsEphemeralStorage: true,
}

// isOfPods reports whether Pods count for a resource of quotas.
func isOfPods(name corev1.ResourceName) bool {
	text := string(name)
	return podResources[name] ||
		strings.HasPrefix(text, corev1.ResourceHugePagesPrefix) ||
		strings.HasPrefix(text, corev1.ResourceRequestsHugePagesPrefix) ||
		isExtendedRequest(name)
}

// isExtendedRequest reports whether a resource of quotas is the requests of an extended one.
func isExtendedRequest(name corev1.ResourceName) bool {
	text := string(name)
	return strings.HasPrefix(text, corev1.ResourceImplicitExtendedClaimsPerClass) ||
		strings.HasPrefix(text, corev1.DefaultResourceRequestsPrefix) && !isNative(name)
}
