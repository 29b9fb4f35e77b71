// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceendpoints

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	netutils "k8s.io/utils/net"

	"github.com/setpoint-io/setpoint/internal/podstate"
)

// Reachable reports whether a Pod is an endpoint of the Services that select it, ready or not:
// it has an address and has not ended.
func Reachable(pod *corev1.Pod) bool {
	return !podstate.Ended(pod) && (pod.Status.PodIP != "" || len(pod.Status.PodIPs) > 0)
}

// Addresses returns the addresses of a Pod that are of a family, in the form in which
// all clients write them.
func Addresses(pod *corev1.Pod, family corev1.IPFamily) []string {
	var all []string
	for _, podIP := range pod.Status.PodIPs {
		// Sloppy: numbers with leading zeros were valid once.
		ip := netutils.ParseIPSloppy(podIP.IP)
		if ip != nil && netutils.IsIPv6(ip) == (family == corev1.IPv6Protocol) {
			all = append(all, ip.String())
		}
	}
	return all
}

// TargetPort returns the number of a Pod's port that a port of a Service leads to.
// A port that is called by name is looked for among the containers, and among the
// init containers that keep running. It returns false if there is none of that name.
func TargetPort(pod *corev1.Pod, port *corev1.ServicePort) (int32, bool) {
	if port.TargetPort.Type == intstr.Int {
		return port.TargetPort.IntVal, true
	}
	for i := range pod.Spec.Containers {
		if n, ok := namedPort(&pod.Spec.Containers[i], port); ok {
			return n, true
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways {
			continue
		}
		if n, ok := namedPort(c, port); ok {
			return n, true
		}
	}
	return 0, false
}

func namedPort(c *corev1.Container, port *corev1.ServicePort) (int32, bool) {
	for i := range c.Ports {
		if p := &c.Ports[i]; p.Name == port.TargetPort.StrVal && p.Protocol == port.Protocol {
			return p.ContainerPort, true
		}
	}
	return 0, false
}

// Hostname returns the name of a Pod below a Service, for DNS, or "" if it has none:
// it has one if it says that its subdomain is the Service.
func Hostname(pod *corev1.Pod, service *corev1.Service) string {
	if pod.Spec.Subdomain == service.Name && pod.Namespace == service.Namespace {
		return pod.Spec.Hostname
	}
	return ""
}

// Headless reports whether a Service has no address of its own.
func Headless(service *corev1.Service) bool {
	return service.Spec.ClusterIP == corev1.ClusterIPNone || service.Spec.ClusterIP == ""
}

// Families returns the families of the addresses of a Service. An API server says
// them for every Service that selects Pods; for one that does not, they follow from
// the Service's address, or are both.
func Families(service *corev1.Service) []corev1.IPFamily {
	switch {
	case len(service.Spec.IPFamilies) > 0:
		return service.Spec.IPFamilies
	case Headless(service):
		return []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	case netutils.IsIPv6String(service.Spec.ClusterIP):
		return []corev1.IPFamily{corev1.IPv6Protocol}
	}
	return []corev1.IPFamily{corev1.IPv4Protocol}
}
