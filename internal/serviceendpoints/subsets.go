// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceendpoints

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Repack returns subsets of Endpoints in the one form that has no other for the same
// content: each address stands once for each set of ports that it offers, all ports
// that are offered by the same addresses stand together, and all is in order. An
// address that is said to be ready and not ready for a port is not ready. The result
// shares nothing with its argument but what addresses and ports point to.
//
// Source of the rules: k8s.io/kubernetes/pkg/api/v1/endpoints, util.go. The order
// differs: upstream's is that of hashes.
func Repack(subsets []corev1.EndpointSubset) []corev1.EndpointSubset {
	r := repacking{at: map[addressKey]int{}, offers: map[portKey]*offer{}}
	for i := range subsets {
		r.add(&subsets[i])
	}
	return r.subsets()
}

// addressKey distinguishes addresses: Pods on their node's network share one.
type addressKey struct {
	ip  string
	uid types.UID
}

func keyOfAddress(a *corev1.EndpointAddress) addressKey {
	key := addressKey{ip: a.IP}
	if a.TargetRef != nil {
		key.uid = a.TargetRef.UID
	}
	return key
}

func compareAddresses(a, b *corev1.EndpointAddress) int {
	x, y := keyOfAddress(a), keyOfAddress(b)
	return cmp.Or(cmp.Compare(x.ip, y.ip), cmp.Compare(x.uid, y.uid))
}

// portKey is a port as a value. The one without a number stands for a subset without
// ports.
type portKey struct {
	port                int32
	name, protocol, app string
	hasApp              bool
}

func keyOfPort(p *corev1.EndpointPort) portKey {
	key := portKey{port: p.Port, name: p.Name, protocol: string(p.Protocol), hasApp: p.AppProtocol != nil}
	if key.hasApp {
		key.app = *p.AppProtocol
	}
	return key
}

func comparePorts(a, b corev1.EndpointPort) int {
	x, y := keyOfPort(&a), keyOfPort(&b)
	return cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(x.port, y.port), cmp.Compare(x.protocol, y.protocol), cmp.Compare(x.app, y.app))
}

// offer holds the addresses that offer a port: for each address, by its number, one of the states.
type offer struct {
	port   corev1.EndpointPort
	states []byte
}

const (
	absent byte = iota
	ready
	notReady
)

type repacking struct {
	at        map[addressKey]int
	addresses []corev1.EndpointAddress
	offers    map[portKey]*offer
}

func (r *repacking) add(s *corev1.EndpointSubset) {
	ports := s.Ports
	if len(ports) == 0 {
		ports = []corev1.EndpointPort{{}}
	}
	for i := range ports {
		key := keyOfPort(&ports[i])
		o := r.offers[key]
		if o == nil {
			o = &offer{port: ports[i]}
			r.offers[key] = o
		}
		for j := range s.Addresses {
			o.set(r.number(&s.Addresses[j]), ready)
		}
		for j := range s.NotReadyAddresses {
			o.set(r.number(&s.NotReadyAddresses[j]), notReady)
		}
	}
}

func (r *repacking) number(a *corev1.EndpointAddress) int {
	key := keyOfAddress(a)
	n, ok := r.at[key]
	if !ok {
		n = len(r.addresses)
		r.at[key] = n
		r.addresses = append(r.addresses, *a)
	}
	return n
}

// set notes a state; the states are in the order in which one overrides another.
func (o *offer) set(address int, state byte) {
	for len(o.states) <= address {
		o.states = append(o.states, absent)
	}
	o.states[address] = max(o.states[address], state)
}

func (r *repacking) subsets() []corev1.EndpointSubset {
	order := make([]int, len(r.addresses))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return compareAddresses(&r.addresses[a], &r.addresses[b]) })

	// Addresses without a port stay apart from those that offer one.
	type offerers struct {
		states string
		ports  bool
	}
	together := map[offerers]*corev1.EndpointSubset{}
	for key, o := range r.offers {
		o.pad(len(r.addresses))
		who := offerers{string(o.states), key != portKey{}}
		s := together[who]
		if s == nil {
			s = &corev1.EndpointSubset{}
			for _, i := range order {
				switch o.states[i] {
				case ready:
					s.Addresses = append(s.Addresses, r.addresses[i])
				case notReady:
					s.NotReadyAddresses = append(s.NotReadyAddresses, r.addresses[i])
				}
			}
			together[who] = s
		}
		if who.ports {
			s.Ports = append(s.Ports, o.port)
		}
	}
	var all []corev1.EndpointSubset
	for _, s := range together {
		if len(s.Addresses)+len(s.NotReadyAddresses) > 0 {
			slices.SortFunc(s.Ports, comparePorts)
			all = append(all, *s)
		}
	}
	// No two subsets have a port in common.
	slices.SortFunc(all, func(a, b corev1.EndpointSubset) int { return slices.CompareFunc(a.Ports, b.Ports, comparePorts) })
	return all
}

func (o *offer) pad(addresses int) {
	for len(o.states) < addresses {
		o.states = append(o.states, absent)
	}
}
