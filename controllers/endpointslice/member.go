// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/internal/endpointslices"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/internal/serviceendpoints"
)

// member is a Pod behind a Service, with what is not in the Pod itself.
type member struct {
	pod      *corev1.Pod
	zone     string // "" if its Node says none
	ports    []discoveryv1.EndpointPort
	portsKey string // the same for the same ports
}

// endpoint returns the member as an endpoint of a Service for one family of
// addresses, and false if it has no address of that family.
func (m *member) endpoint(service *corev1.Service, family corev1.IPFamily) (discoveryv1.Endpoint, bool) {
	addresses := serviceendpoints.Addresses(m.pod, family)
	if len(addresses) == 0 {
		return discoveryv1.Endpoint{}, false
	}
	serving := podstate.Ready(m.pod)
	terminating := m.pod.DeletionTimestamp != nil
	// A proxy that reads only ready must not send requests to a Pod that terminates,
	// except where the Service wants Pods in any state.
	ready := service.Spec.PublishNotReadyAddresses || serving && !terminating
	e := discoveryv1.Endpoint{
		Addresses:  addresses,
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: m.pod.Namespace, Name: m.pod.Name, UID: m.pod.UID},
	}
	if m.pod.Spec.NodeName != "" {
		e.NodeName = &m.pod.Spec.NodeName
	}
	if m.zone != "" {
		e.Zone = &m.zone
	}
	if hostname := serviceendpoints.Hostname(m.pod, service); hostname != "" {
		e.Hostname = &hostname
	}
	return e, true
}

// portNumbers finds the ports of Pods. Where a Service calls none by name they are the
// same for all.
type portNumbers struct {
	service *corev1.Service
	same    bool
	ports   []discoveryv1.EndpointPort
	key     string
}

func newPortNumbers(service *corev1.Service) *portNumbers {
	n := &portNumbers{service: service, same: true}
	for i := range service.Spec.Ports {
		n.same = n.same && service.Spec.Ports[i].TargetPort.Type == intstr.Int
	}
	if n.same {
		n.ports, n.key = n.look(nil)
	}
	return n
}

// of returns the ports of a Pod that the Service's ports lead to. A port that the Pod
// has not is left out.
func (n *portNumbers) of(pod *corev1.Pod) ([]discoveryv1.EndpointPort, string) {
	if n.same {
		return n.ports, n.key
	}
	return n.look(pod)
}

func (n *portNumbers) look(pod *corev1.Pod) ([]discoveryv1.EndpointPort, string) {
	ports := []discoveryv1.EndpointPort{}
	for i := range n.service.Spec.Ports {
		p := &n.service.Spec.Ports[i]
		if number, ok := serviceendpoints.TargetPort(pod, p); ok {
			ports = append(ports, discoveryv1.EndpointPort{Name: &p.Name, Port: &number, Protocol: &p.Protocol, AppProtocol: p.AppProtocol})
		}
	}
	return ports, endpointslices.PortsKey(ports)
}
