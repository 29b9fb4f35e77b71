// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/setpoint-io/setpoint/internal/endpointslices"
)

// A Service with the annotation service.kubernetes.io/topology-mode: Auto has its
// endpoints shared out to the zones in proportion to their CPU: each endpoint to its
// own zone, except for those that a zone with too many gives to one with too few.
//
// Source of the rules and words: k8s.io/endpointslice/topologycache.

// overload is how much more than its share an endpoint may have to carry.
const overload = 0.2

// What is said when endpoints are not shared out.
const (
	tooLittleKnown    = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
	tooFewEndpoints   = "Insufficient number of endpoints"
	tooUneven         = "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold"
	withoutZone       = "One or more endpoints do not have a zone specified"
	nothingToAllocate = "No hints allocated for zones"
)

// zones is how much of the cluster each zone is; the shares add up to 1. A nil map
// is not known.
type zones struct{ shares map[string]float64 }

// note is the result of sharing out the endpoints of a family.
type note struct {
	family   corev1.IPFamily
	disabled string // why not; empty: it was done
}

// share gives hints to the endpoints of a family, or takes them away where it cannot.
// Slices whose hints will do stay as they are.
func (z *zones) share(all []*packing, family corev1.IPFamily) []note {
	why := z.tryShare(all)
	if why != "" {
		for _, p := range all {
			for i := range p.endpoints {
				p.changed = p.changed || p.endpoints[i].Hints != nil
				p.endpoints[i].Hints = nil
			}
		}
	}
	for _, p := range all {
		p.changed = p.changed && !p.asBefore()
	}
	return []note{{family, why}}
}

// asBefore reports whether the endpoints of an old slice are what they were: hints
// that were taken away may have been given again.
func (p *packing) asBefore() bool {
	if p.old == nil || !maps.Equal(p.old.Labels, p.labels) || len(p.old.Endpoints) != len(p.endpoints) {
		return false
	}
	for i := range p.endpoints {
		a, b := &p.old.Endpoints[i], &p.endpoints[i]
		if endpointslices.IdentityOf(a) != endpointslices.IdentityOf(b) || !endpointslices.Same(a, b) || !endpointslices.SameHints(a, b) {
			return false
		}
	}
	return true
}

// tryShare returns why it cannot be done, or "".
func (z *zones) tryShare(all []*packing) string {
	ready := 0
	for _, p := range all {
		for i := range p.endpoints {
			if e := &p.endpoints[i]; isReady(e) {
				ready++
			}
		}
	}
	quotas, why := z.quotas(ready)
	if why != "" {
		return why
	}
	have := map[string]int{}
	var open []*packing
	for _, p := range all {
		if p.old != nil && !p.changed && keepsHints(p, have, quotas) {
			continue
		}
		p.changed = true
		open = append(open, p)
	}
	for _, p := range open {
		for i := range p.endpoints {
			e := &p.endpoints[i]
			e.Hints = nil
			if !isReady(e) {
				continue
			}
			if e.Zone == nil {
				return withoutZone
			}
			have[*e.Zone]++
			e.Hints = forZone(*e.Zone)
		}
	}
	if len(have) == 0 {
		return nothingToAllocate
	}
	move(open, surplus(quotas, have))
	return ""
}

func forZone(zone string) *discoveryv1.EndpointHints {
	return &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: zone}}}
}

// quota is how many endpoints a zone should have.
type quota struct {
	least, most int
	ideal       float64
}

// quotas returns the quota of each zone for a number of endpoints, or why there is
// none.
func (z *zones) quotas(endpoints int) (map[string]quota, string) {
	if z.shares == nil {
		return nil, tooLittleKnown
	}
	counts := fmt.Sprintf(" (%d endpoints, %d zones)", endpoints, len(z.shares))
	if len(z.shares) > endpoints {
		return nil, tooFewEndpoints + counts
	}
	all := map[string]quota{}
	sum := 0
	for zone, share := range z.shares {
		ideal := share * float64(endpoints)
		least := int(math.Ceil(ideal / (1 + overload)))
		all[zone] = quota{least: least, ideal: max(ideal, float64(least))}
		sum += least
	}
	if sum > endpoints {
		return nil, tooUneven + counts
	}
	for zone, q := range all {
		q.most = q.least + endpoints - sum
		all[zone] = q
	}
	return all, ""
}

// keepsHints reports whether the hints of a slice can stay, and if so counts them.
func keepsHints(p *packing, have map[string]int, quotas map[string]quota) bool {
	here := map[string]int{}
	for i := range p.endpoints {
		e := &p.endpoints[i]
		if !isReady(e) {
			continue
		}
		if e.Hints == nil || len(e.Hints.ForZones) == 0 {
			return false
		}
		for _, zone := range e.Hints.ForZones {
			here[zone.Name]++
		}
	}
	for zone, n := range here {
		if q, ok := quotas[zone]; !ok || have[zone]+n > q.most {
			return false
		}
	}
	for zone, n := range here {
		have[zone] += n
	}
	return true
}

// moves says how many endpoints each zone gives away and gets.
type moves struct{ from, to map[string]int }

// surplus compares what zones have with what they should have.
func surplus(quotas map[string]quota, have map[string]int) moves {
	tooMany, tooFew := map[string]float64{}, map[string]float64{}
	for zone, q := range quotas {
		switch n := float64(have[zone]); {
		case n > q.ideal:
			tooMany[zone] = n - q.ideal
		case n < q.ideal:
			tooFew[zone] = q.ideal - n
		}
	}
	m := moves{map[string]int{}, map[string]int{}}
	for {
		giver, gives := largest(tooMany)
		taker, takes := largest(tooFew)
		// Less than half an endpoint is not worth a move, nor is less than one for
		// both.
		if gives < 0.5 || takes < 0.5 || gives < 1 && takes < 1 {
			return m
		}
		m.from[giver]++
		m.to[taker]++
		tooMany[giver]--
		tooFew[taker]--
	}
}

func largest(of map[string]float64) (zone string, n float64) {
	for _, z := range slices.Sorted(maps.Keys(of)) {
		if of[z] > n {
			zone, n = z, of[z]
		}
	}
	return zone, n
}

// move gives endpoints of zones that have too many to zones that have too few.
func move(open []*packing, m moves) {
	takers := slices.Sorted(maps.Keys(m.to))
	for _, p := range open {
		for i := range p.endpoints {
			e := &p.endpoints[i]
			if !isReady(e) || m.from[*e.Zone] == 0 || len(takers) == 0 {
				continue
			}
			m.from[*e.Zone]--
			taker := takers[0]
			e.Hints = forZone(taker)
			if m.to[taker]--; m.to[taker] == 0 {
				takers = takers[1:]
			}
		}
	}
}
