// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	netutils "k8s.io/utils/net"

	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/internal/serviceendpoints"
)

// truncated is the value of the annotation over-capacity of Endpoints that do not show
// all addresses.
const truncated = "truncated"

// desired returns the Endpoints of a Service as they should be. existing are the present
// Endpoints, whose other annotations stay.
func desired(service *corev1.Service, pods []*corev1.Pod, existing *corev1.Endpoints) *corev1.Endpoints {
	var subsets []corev1.EndpointSubset
	for _, pod := range pods {
		if s, ok := subset(service, pod); ok {
			subsets = append(subsets, s)
		}
	}
	subsets, cut := truncate(serviceendpoints.Repack(subsets))

	wanted := &corev1.Endpoints{ObjectMeta: *existing.ObjectMeta.DeepCopy(), Subsets: subsets}
	wanted.Labels = labelsOf(service)
	delete(wanted.Annotations, corev1.EndpointsOverCapacity)
	if cut {
		annotate(wanted, corev1.EndpointsOverCapacity, truncated)
	}
	return wanted
}

// subset returns a Pod as Endpoints of its own, and false if it is none of a Service's.
func subset(service *corev1.Service, pod *corev1.Pod) (corev1.EndpointSubset, bool) {
	var s corev1.EndpointSubset
	if !serviceendpoints.Reachable(pod) || pod.DeletionTimestamp != nil && !service.Spec.PublishNotReadyAddresses {
		return s, false
	}
	addresses := serviceendpoints.Addresses(pod, family(service, pod))
	if len(addresses) == 0 {
		return s, false
	}
	for i := range service.Spec.Ports {
		p := &service.Spec.Ports[i]
		if number, ok := serviceendpoints.TargetPort(pod, p); ok {
			s.Ports = append(s.Ports, corev1.EndpointPort{Name: p.Name, Port: number, Protocol: p.Protocol, AppProtocol: p.AppProtocol})
		}
	}
	// Without ports there is nothing to connect to, unless the Service is but a name
	// for its Pods.
	if len(s.Ports) == 0 && (len(service.Spec.Ports) > 0 || service.Spec.ClusterIP != corev1.ClusterIPNone) {
		return s, false
	}
	address := corev1.EndpointAddress{
		IP:        addresses[0],
		Hostname:  serviceendpoints.Hostname(pod, service),
		NodeName:  &pod.Spec.NodeName,
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	}
	if service.Spec.PublishNotReadyAddresses || podstate.Ready(pod) {
		s.Addresses = []corev1.EndpointAddress{address}
	} else {
		s.NotReadyAddresses = []corev1.EndpointAddress{address}
	}
	return s, true
}

// family returns the family of the addresses in the Endpoints of a Service, which
// shows one family only: the first. A headless Service of which no family is known
// shows the first address of each Pod.
func family(service *corev1.Service, pod *corev1.Pod) corev1.IPFamily {
	if len(service.Spec.IPFamilies) == 0 && serviceendpoints.Headless(service) && netutils.IsIPv6String(pod.Status.PodIP) {
		return corev1.IPv6Protocol
	}
	return serviceendpoints.Families(service)[0]
}

// labelsOf returns the labels of the Endpoints of a Service: its own, and those that
// only this controller sets.
func labelsOf(service *corev1.Service) map[string]string {
	all := maps.Clone(service.Labels)
	if all == nil {
		all = map[string]string{}
	}
	delete(all, corev1.IsHeadlessService)
	if serviceendpoints.Headless(service) {
		all[corev1.IsHeadlessService] = ""
	}
	all[labelManagedBy] = source
	return all
}

func annotate(endpoints *corev1.Endpoints, key, value string) {
	if endpoints.Annotations == nil {
		endpoints.Annotations = map[string]string{}
	}
	endpoints.Annotations[key] = value
}

// stamp writes into Endpoints to which change they are the answer.
func stamp(endpoints *corev1.Endpoints, trigger time.Time) {
	if text, ok := serviceendpoints.Annotation(trigger); ok {
		annotate(endpoints, corev1.EndpointsLastChangeTriggerTime, text)
		return
	}
	delete(endpoints.Annotations, corev1.EndpointsLastChangeTriggerTime)
}

// same reports whether Endpoints are as wanted. Those of another writer may be in
// another order.
func same(existing, wanted *corev1.Endpoints) bool {
	return maps.Equal(existing.Labels, wanted.Labels) &&
		existing.Annotations[corev1.EndpointsOverCapacity] == wanted.Annotations[corev1.EndpointsOverCapacity] &&
		slices.EqualFunc(serviceendpoints.Repack(existing.Subsets), wanted.Subsets, sameSubset)
}

func sameSubset(a, b corev1.EndpointSubset) bool {
	return slices.EqualFunc(a.Addresses, b.Addresses, sameAddress) &&
		slices.EqualFunc(a.NotReadyAddresses, b.NotReadyAddresses, sameAddress) &&
		slices.EqualFunc(a.Ports, b.Ports, samePort)
}

// sameAddress leaves out the resourceVersion of the Pod, which no client needs.
func sameAddress(a, b corev1.EndpointAddress) bool {
	return a.IP == b.IP && a.Hostname == b.Hostname && equal(a.NodeName, b.NodeName) &&
		target(a) == target(b)
}

func target(a corev1.EndpointAddress) corev1.ObjectReference {
	if a.TargetRef == nil {
		return corev1.ObjectReference{}
	}
	ref := *a.TargetRef
	ref.ResourceVersion = ""
	return ref
}

func samePort(a, b corev1.EndpointPort) bool {
	return a.Name == b.Name && a.Port == b.Port && a.Protocol == b.Protocol && equal(a.AppProtocol, b.AppProtocol)
}

func equal[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
