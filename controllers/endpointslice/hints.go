// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// nearby returns the hints of an endpoint of a Service that prefers near endpoints: its
// own zone, and its own node if the Service says so. Endpoints that are not ready have no
// hints.
//
// Source of the rules: k8s.io/endpointslice/trafficdist.
func nearby(service *corev1.Service, e *discoveryv1.Endpoint) *discoveryv1.EndpointHints {
	distribution := service.Spec.TrafficDistribution
	if distribution == nil || !isReady(e) || asksForBalance(service.Annotations) {
		return nil
	}
	var hints discoveryv1.EndpointHints
	switch *distribution {
	case corev1.ServiceTrafficDistributionPreferSameNode:
		if e.NodeName != nil {
			hints.ForNodes = []discoveryv1.ForNode{{Name: *e.NodeName}}
		}
		fallthrough
	case corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone:
		if e.Zone != nil {
			hints.ForZones = []discoveryv1.ForZone{{Name: *e.Zone}}
		}
	}
	if hints.ForNodes == nil && hints.ForZones == nil {
		return nil
	}
	return &hints
}

func isReady(e *discoveryv1.Endpoint) bool { return e.Conditions.Ready != nil && *e.Conditions.Ready }

// withoutPreferSame returns the Service as it was before there were the preferences for
// the same zone and the same node.
func withoutPreferSame(service *corev1.Service) *corev1.Service {
	d := service.Spec.TrafficDistribution
	if d == nil || *d == corev1.ServiceTrafficDistributionPreferClose {
		return service
	}
	plain := *service
	plain.Spec.TrafficDistribution = nil
	return &plain
}
