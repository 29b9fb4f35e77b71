// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package accounting

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceClaim returns what a claim of devices counts for: the devices that it can get at
// most, for each device class. extended returns the extended resource of a device class, "" if
// it has none. pod is what the Pod counts for whose extended resources the claim stands for,
// see [StandsFor], nil if there is none: devices that the Pod counts for are not counted twice.
func ResourceClaim(c *resourcev1.ResourceClaim, pod corev1.ResourceList, extended func(class string) string) corev1.ResourceList {
	used := corev1.ResourceList{CountName(ResourceClaims): number(1)}
	byName := corev1.ResourceList{} // by the names under which Pods request devices
	for class, devices := range devicesByClass(c) {
		used[corev1.ResourceName(class+corev1.ResourceClaimsPerClass)] = devices
		if class == "" {
			continue
		}
		byName[corev1.ResourceName(corev1.ResourceImplicitExtendedClaimsPerClass+class)] = devices
		if name := extended(class); name != "" {
			sum := byName[requested(corev1.ResourceName(name))]
			sum.Add(devices)
			byName[requested(corev1.ResourceName(name))] = sum
		}
	}
	for name, devices := range byName {
		devices.Sub(pod[name])
		if devices.Sign() > 0 {
			used[name] = devices
		}
	}
	return used
}

// devicesByClass returns how many devices of each class a claim can get at most.
func devicesByClass(c *resourcev1.ResourceClaim) map[string]resource.Quantity {
	all := map[string]resource.Quantity{}
	for i := range c.Spec.Devices.Requests {
		request := &c.Spec.Devices.Requests[i]
		most := map[string]int64{}
		if exactly := request.Exactly; exactly != nil && len(request.FirstAvailable) == 0 {
			most[exactly.DeviceClassName] = devices(exactly.AllocationMode, exactly.Count)
		}
		// One of several alternatives is allocated.
		for j := range request.FirstAvailable {
			sub := &request.FirstAvailable[j]
			if n := devices(sub.AllocationMode, sub.Count); n > most[sub.DeviceClassName] {
				most[sub.DeviceClassName] = n
			}
		}
		for class, n := range most {
			sum := all[class]
			sum.Add(number(int(n)))
			all[class] = sum
		}
	}
	return all
}

// devices returns how many devices a request can get. An allocation mode of a newer version
// counts for none.
func devices(mode resourcev1.DeviceAllocationMode, count int64) int64 {
	switch mode {
	case resourcev1.DeviceAllocationModeExactCount:
		return count
	case resourcev1.DeviceAllocationModeAll:
		return resourcev1.AllocationResultsMaxSize
	}
	return 0
}

// StandsFor reports whether the scheduler has made a claim for the extended resources of a
// Pod. siblings are the claims that the Pod controls and that are marked as such; the claim
// itself may be among them. Of several, the status of the Pod names one, or the oldest counts.
// Source: k8s.io/kubernetes/pkg/quota/v1/evaluator/core, getVerifiedPodUsage.
func StandsFor(c *resourcev1.ResourceClaim, pod *corev1.Pod, siblings []*resourcev1.ResourceClaim) bool {
	if c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true" {
		return false
	}
	ref := metav1.GetControllerOfNoCopy(c)
	if ref == nil || ref.Kind != "Pod" || ref.APIVersion != "v1" || ref.UID != pod.UID || ref.Name != pod.Name || c.Namespace != pod.Namespace {
		return false
	}
	if status := pod.Status.ExtendedResourceClaimStatus; status != nil {
		return status.ResourceClaimName == c.Name
	}
	for _, other := range siblings {
		if age := other.CreationTimestamp.Compare(c.CreationTimestamp.Time); age < 0 || age == 0 && other.Name < c.Name {
			return false
		}
	}
	return true
}

// isOfResourceClaims reports whether ResourceClaims count for a resource of quotas.
func isOfResourceClaims(name corev1.ResourceName, around Around) bool {
	text := string(name)
	if name == CountName(ResourceClaims) || strings.HasSuffix(text, corev1.ResourceClaimsPerClass) {
		return true
	}
	if class, ok := strings.CutPrefix(text, corev1.ResourceImplicitExtendedClaimsPerClass); ok && around.extended(class) != "" {
		return true
	}
	of, ok := strings.CutPrefix(text, corev1.DefaultResourceRequestsPrefix)
	return ok && isExtendedRequest(name) && around.HasDeviceClass != nil && around.HasDeviceClass(of)
}
