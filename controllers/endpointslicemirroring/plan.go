// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslicemirroring

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	netutils "k8s.io/utils/net"

	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/internal/endpointslices"
	"github.com/setpoint-io/setpoint/internal/serviceendpoints"
)

// skipped counts the addresses that are not mirrored.
type skipped struct{ invalid, tooMany int }

// kind is what makes endpoints go into one slice.
type kind struct {
	addressType discoveryv1.AddressType
	ports       string
}

func compareKinds(a, b kind) int {
	return cmp.Or(cmp.Compare(a.addressType, b.addressType), cmp.Compare(a.ports, b.ports))
}

// mirror is a slice as it should be.
type mirror struct {
	ports     []discoveryv1.EndpointPort
	endpoints map[endpointslices.Identity]discoveryv1.Endpoint
}

// plan has the writes after which slices show Endpoints: for each set of ports and each
// type of addresses one slice, with at most most endpoints. existing are the slices that
// there are, in an order that does not change; they are not changed either.
func plan(endpoints *corev1.Endpoints, existing []*discoveryv1.EndpointSlice, most int) (endpointslices.Changes, skipped, endpointslices.Tally) {
	mirrors, skipped := mirrorsOf(endpoints, most)
	var changes endpointslices.Changes
	tally := endpointslices.Tally{Slices: len(mirrors)}
	for _, m := range mirrors {
		tally.Endpoints += len(m.endpoints)
		tally.Ideal += endpointslices.Ideal(len(m.endpoints), most)
	}
	labels, annotations := labelsOf(endpoints), annotationsOf(endpoints)
	for _, old := range existing {
		k := kind{old.AddressType, endpointslices.PortsKey(old.Ports)}
		m, wanted := mirrors[k]
		delete(mirrors, k)
		if !wanted {
			changes.Delete = append(changes.Delete, old)
			tally.Removed += len(old.Endpoints)
			continue
		}
		compare(&tally, old, m)
		if !shows(old, m, endpoints) || !maps.Equal(old.Labels, labels) || !maps.Equal(old.Annotations, annotations) {
			slice := newSlice(endpoints, k, m)
			slice.GenerateName, slice.Name = "", old.Name
			slice.UID, slice.ResourceVersion = old.UID, old.ResourceVersion
			changes.Update = append(changes.Update, slice)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(mirrors), compareKinds) {
		changes.Create = append(changes.Create, newSlice(endpoints, k, mirrors[k]))
		tally.Added += len(mirrors[k].endpoints)
	}
	changes.Recycle(func(*discoveryv1.EndpointSlice) bool { return true })
	if endpoints.DeletionTimestamp != nil {
		changes.Create = nil // the garbage collector deletes slices at this moment
	}
	return changes, skipped, tally
}

// compare counts the endpoints that come into a slice, change in it, and go from it.
func compare(tally *endpointslices.Tally, old *discoveryv1.EndpointSlice, m mirror) {
	stay := map[endpointslices.Identity]bool{}
	for i := range old.Endpoints {
		id := endpointslices.IdentityOf(&old.Endpoints[i])
		e, wanted := m.endpoints[id]
		switch {
		case !wanted || stay[id]:
			tally.Removed++
		case !endpointslices.Same(&old.Endpoints[i], &e):
			tally.Updated++
		}
		if wanted {
			stay[id] = true
		}
	}
	tally.Added += len(m.endpoints) - len(stay)
}

// mirrorsOf returns the slices that mirror Endpoints, and what of these is left out.
// Ready addresses come first, so that others are left out first.
func mirrorsOf(endpoints *corev1.Endpoints, most int) (map[kind]mirror, skipped) {
	all := map[kind]mirror{}
	var left skipped
	for _, subset := range serviceendpoints.Repack(endpoints.Subsets) {
		ports := portsOf(&subset)
		key := endpointslices.PortsKey(ports)
		room := most
		add := func(address *corev1.EndpointAddress, ready bool) {
			if room == 0 {
				left.tooMany++
				return
			}
			e, addressType, ok := endpointOf(address, ready)
			if !ok {
				left.invalid++
				return
			}
			room--
			k := kind{addressType, key}
			m, known := all[k]
			if !known {
				m = mirror{ports: ports, endpoints: map[endpointslices.Identity]discoveryv1.Endpoint{}}
				all[k] = m
			}
			m.endpoints[endpointslices.IdentityOf(&e)] = e
		}
		for i := range subset.Addresses {
			add(&subset.Addresses[i], true)
		}
		for i := range subset.NotReadyAddresses {
			add(&subset.NotReadyAddresses[i], false)
		}
	}
	return all, left
}

func portsOf(subset *corev1.EndpointSubset) []discoveryv1.EndpointPort {
	ports := []discoveryv1.EndpointPort{}
	for i := range subset.Ports {
		p := &subset.Ports[i]
		ports = append(ports, discoveryv1.EndpointPort{Name: &p.Name, Port: &p.Port, Protocol: &p.Protocol, AppProtocol: p.AppProtocol})
	}
	return ports
}

// endpointOf returns an address of Endpoints as an endpoint of a slice, and false if
// it is no address.
func endpointOf(address *corev1.EndpointAddress, ready bool) (discoveryv1.Endpoint, discoveryv1.AddressType, bool) {
	ip := netutils.ParseIPSloppy(address.IP)
	if ip == nil {
		return discoveryv1.Endpoint{}, "", false
	}
	addressType := discoveryv1.AddressTypeIPv4
	if netutils.IsIPv6(ip) {
		addressType = discoveryv1.AddressTypeIPv6
	}
	e := discoveryv1.Endpoint{
		Addresses:  []string{ip.String()},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		TargetRef:  address.TargetRef,
		NodeName:   address.NodeName,
	}
	if address.Hostname != "" {
		e.Hostname = &address.Hostname
	}
	return e, addressType, true
}

// shows reports whether a slice shows what it should, and belongs to these Endpoints
// and not to others that had their name before.
func shows(old *discoveryv1.EndpointSlice, m mirror, endpoints *corev1.Endpoints) bool {
	if len(old.Endpoints) != len(m.endpoints) {
		return false
	}
	seen := make(map[endpointslices.Identity]bool, len(old.Endpoints))
	for i := range old.Endpoints {
		id := endpointslices.IdentityOf(&old.Endpoints[i])
		e, ok := m.endpoints[id]
		if !ok || seen[id] || !endpointslices.Same(&old.Endpoints[i], &e) {
			return false
		}
		seen[id] = true
	}
	return slices.ContainsFunc(old.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == endpoints.UID })
}

func newSlice(endpoints *corev1.Endpoints, k kind, m mirror) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName:    endpointslices.Prefix(endpoints.Name),
			Namespace:       endpoints.Namespace,
			Labels:          labelsOf(endpoints),
			Annotations:     annotationsOf(endpoints),
			OwnerReferences: []metav1.OwnerReference{owned.By(endpoints, endpointsResource.GroupVersionKind())},
		},
		AddressType: k.addressType,
		Ports:       m.ports,
		Endpoints:   make([]discoveryv1.Endpoint, 0, len(m.endpoints)),
	}
	for _, e := range m.endpoints {
		slice.Endpoints = append(slice.Endpoints, e)
	}
	slices.SortFunc(slice.Endpoints, func(a, b discoveryv1.Endpoint) int { return slices.Compare(a.Addresses, b.Addresses) })
	return slice
}

// labelsOf returns the labels of the slices of Endpoints: those of the Endpoints, and
// two that say whose the slices are.
func labelsOf(endpoints *corev1.Endpoints) map[string]string {
	all := maps.Clone(endpoints.Labels)
	if all == nil {
		all = map[string]string{}
	}
	all[discoveryv1.LabelServiceName] = endpoints.Name
	all[discoveryv1.LabelManagedBy] = Manager
	return all
}

// annotationsOf returns the annotations of the slices of Endpoints: those of the
// Endpoints, without two that are about the Endpoints as an object.
func annotationsOf(endpoints *corev1.Endpoints) map[string]string {
	all := maps.Clone(endpoints.Annotations)
	delete(all, corev1.EndpointsLastChangeTriggerTime)
	delete(all, corev1.LastAppliedConfigAnnotation)
	return all
}
