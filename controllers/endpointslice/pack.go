// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"maps"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/setpoint-io/setpoint/internal/endpointslices"
)

// packing is a slice in the making.
type packing struct {
	old       *discoveryv1.EndpointSlice // nil: a new one
	ports     []discoveryv1.EndpointPort
	endpoints []discoveryv1.Endpoint
	labels    map[string]string
	changed   bool // old is not as it should be
	removed   int  // endpoints of old that go
}

// pack puts the endpoints of a group into slices of at most most endpoints, with the
// fewest writes: an endpoint stays where it is, new ones go where something is to be
// written in any case, then into the one slice that they fit into best, then into new
// ones. Slices are not evened out or joined, because such writes change nothing for
// clients. A packing with an old slice and no endpoints is to be deleted.
//
// keepHints leaves the hints of endpoints that are there as they are; otherwise they
// are part of what an endpoint should be. added is how many endpoints are in none of the
// old slices.
//
// Source of the rules: k8s.io/endpointslice, reconciler.go, reconcileByPortMapping.
func pack(g *group, labels map[string]string, most int, keepHints bool) (all []*packing, added int) {
	want := make(map[endpointslices.Identity]int, len(g.endpoints))
	for i := range g.endpoints {
		want[endpointslices.IdentityOf(&g.endpoints[i])] = i
	}
	for _, old := range g.existing {
		all = append(all, keep(old, g, want, labels, keepHints))
	}
	// What is left, in the order in which it came.
	var left []discoveryv1.Endpoint
	for _, i := range slices.Sorted(maps.Values(want)) {
		left = append(left, g.endpoints[i])
	}
	added = len(left)
	left = fill(all, left, most)
	for len(left) > 0 {
		p := best(all, len(left), most)
		if p == nil {
			p = &packing{ports: g.ports, labels: labels}
			all = append(all, p)
		}
		left = p.take(left, most)
	}
	return all, added
}

// keep returns what stays in an old slice, and takes it out of want. An endpoint that
// stands in two slices stays in the first.
func keep(old *discoveryv1.EndpointSlice, g *group, want map[endpointslices.Identity]int, labels map[string]string, keepHints bool) *packing {
	p := &packing{old: old, ports: old.Ports, labels: labels, endpoints: make([]discoveryv1.Endpoint, 0, len(old.Endpoints))}
	p.changed = !maps.Equal(old.Labels, labels)
	for i := range old.Endpoints {
		has := &old.Endpoints[i]
		id := endpointslices.IdentityOf(has)
		at, wanted := want[id]
		if !wanted {
			p.changed = true
			p.removed++
			continue
		}
		delete(want, id)
		e := g.endpoints[at]
		if keepHints && isReady(&e) {
			e.Hints = has.Hints
		}
		p.changed = p.changed || !endpointslices.Same(has, &e) || !endpointslices.SameHints(has, &e)
		p.endpoints = append(p.endpoints, e)
	}
	return p
}

// fill puts endpoints into the slices that are written in any case, the fullest first,
// and returns those that are left. That includes a slice with nothing left in it,
// which would otherwise be deleted.
func fill(all []*packing, left []discoveryv1.Endpoint, most int) []discoveryv1.Endpoint {
	var written []*packing
	for _, p := range all {
		if p.changed || len(p.endpoints) == 0 {
			written = append(written, p)
		}
	}
	slices.SortStableFunc(written, func(a, b *packing) int { return len(b.endpoints) - len(a.endpoints) })
	for _, p := range written {
		left = p.take(left, most)
	}
	return left
}

// best returns the slice that n more endpoints leave the least room in, or nil if they
// fit into none.
func best(all []*packing, n, most int) *packing {
	var found *packing
	for _, p := range all {
		if len(p.endpoints)+n <= most && (found == nil || len(p.endpoints) > len(found.endpoints)) {
			found = p
		}
	}
	return found
}

// take takes as many endpoints as there is room for, and returns the rest.
func (p *packing) take(left []discoveryv1.Endpoint, most int) []discoveryv1.Endpoint {
	n := min(len(left), max(0, most-len(p.endpoints)))
	if n > 0 {
		p.endpoints = append(p.endpoints, left[:n]...)
		p.changed = true
	}
	return left[n:]
}
