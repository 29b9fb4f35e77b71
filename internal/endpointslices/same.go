// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslices

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Identity is what makes an endpoint the one it is. It is comparable.
type Identity struct {
	addresses string
	hostname  string
	namespace string
	name      string
}

// IdentityOf returns what distinguishes an endpoint from others.
//
// Source of the choice: k8s.io/endpointslice/util, endpointset.go.
func IdentityOf(e *discoveryv1.Endpoint) Identity {
	var id Identity
	if len(e.Addresses) == 1 {
		id.addresses = e.Addresses[0]
	} else {
		id.addresses = strings.Join(slices.Sorted(slices.Values(e.Addresses)), ",")
	}
	if e.Hostname != nil {
		id.hostname = *e.Hostname
	}
	if e.TargetRef != nil {
		id.namespace, id.name = e.TargetRef.Namespace, e.TargetRef.Name
	}
	return id
}

// Same reports whether two endpoints of one identity are the same in all else, except
// hints, which depend on the other endpoints, and the resourceVersion of the Pod, which
// no client needs.
func Same(a, b *discoveryv1.Endpoint) bool {
	return equal(a.NodeName, b.NodeName) && equal(a.Zone, b.Zone) &&
		equal(a.Conditions.Ready, b.Conditions.Ready) &&
		equal(a.Conditions.Serving, b.Conditions.Serving) &&
		equal(a.Conditions.Terminating, b.Conditions.Terminating) &&
		sameTarget(a.TargetRef, b.TargetRef)
}

func sameTarget(a, b *corev1.ObjectReference) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.ResourceVersion, y.ResourceVersion = "", ""
	return x == y
}

// SameHints reports whether two endpoints are meant for the same zones and nodes.
func SameHints(a, b *discoveryv1.Endpoint) bool {
	return a.Hints == nil && b.Hints == nil || equality.Semantic.DeepEqual(a.Hints, b.Hints)
}

func equal[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// PortsKey returns a text that is the same for the same ports in any order.
func PortsKey(ports []discoveryv1.EndpointPort) string {
	texts := make([]string, len(ports))
	for i, p := range ports {
		text := value(p.Name) + "/" + string(value(p.Protocol)) + "/"
		if p.Port != nil {
			text += strconv.Itoa(int(*p.Port))
		}
		// An empty protocol and none mean different things to readers of the slice.
		if p.AppProtocol != nil {
			text += "/" + *p.AppProtocol
		}
		texts[i] = text
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
