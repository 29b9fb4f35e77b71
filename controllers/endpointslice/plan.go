// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/internal/endpointslices"
	"github.com/setpoint-io/setpoint/internal/serviceendpoints"
)

// plan has the writes after which the slices of a Service show its members: for each
// family of addresses and each set of ports slices of their own, or one without endpoints
// where a family has none. existing are the slices that there are, in an order that does
// not change; they are not changed either. zones has the share of each zone in the
// cluster if the Service requests its endpoints to be shared out by it, and is nil
// otherwise. There is a tally for each family.
func plan(service *corev1.Service, members []member, existing []*discoveryv1.EndpointSlice, most int, zones *zones) (endpointslices.Changes, []note, []tally) {
	var all endpointslices.Changes
	var notes []note
	var tallies []tally
	byType := map[discoveryv1.AddressType][]*discoveryv1.EndpointSlice{}
	for _, slice := range existing {
		byType[slice.AddressType] = append(byType[slice.AddressType], slice)
	}
	for _, family := range serviceendpoints.Families(service) {
		// Families and types of addresses have the same names.
		f := familyPlan{service: service, family: family, most: most, labels: labelsOf(service)}
		changes, n, t := f.plan(members, byType[discoveryv1.AddressType(family)], zones)
		all.Add(changes)
		notes = append(notes, n...)
		tallies = append(tallies, t)
		delete(byType, discoveryv1.AddressType(family))
	}
	for _, addressType := range slices.Sorted(maps.Keys(byType)) {
		all.Delete = append(all.Delete, byType[addressType]...)
	}
	if service.DeletionTimestamp != nil {
		// The garbage collector deletes slices at this moment; new ones would keep
		// it busy.
		all.Create = nil
	}
	return all, notes, tallies
}

// tally is what metrics show of the plan for a family.
type tally struct {
	endpointslices.Tally

	changed int // slices
}

// familyPlan is the part of a plan for one family of addresses.
type familyPlan struct {
	service *corev1.Service
	family  corev1.IPFamily
	most    int
	labels  map[string]string
}

// group is what belongs into slices of its own.
type group struct {
	ports     []discoveryv1.EndpointPort
	endpoints []discoveryv1.Endpoint
	existing  []*discoveryv1.EndpointSlice
}

func (f *familyPlan) plan(members []member, existing []*discoveryv1.EndpointSlice, zones *zones) (endpointslices.Changes, []note, tally) {
	groups := f.groups(members)
	var changes endpointslices.Changes
	var t tally
	for _, slice := range existing {
		key := endpointslices.PortsKey(slice.Ports)
		switch g := groups[key]; {
		case g != nil && f.owns(slice):
			g.existing = append(g.existing, slice)
		default:
			changes.Delete = append(changes.Delete, slice)
			t.Removed += len(slice.Endpoints)
		}
	}
	var packed []*packing
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		g := groups[key]
		p, added := pack(g, f.labels, f.most, zones != nil)
		packed = append(packed, p...)
		t.Added += added
		t.Endpoints += len(g.endpoints)
		t.Ideal += endpointslices.Ideal(len(g.endpoints), f.most)
	}
	var notes []note
	if zones != nil {
		notes = zones.share(packed, f.family)
	}
	kept := 0
	for _, p := range packed {
		t.Removed += p.removed
		switch {
		case p.old != nil && len(p.endpoints) == 0:
			changes.Delete = append(changes.Delete, p.old)
			continue
		case p.old == nil:
			changes.Create = append(changes.Create, f.slice(p))
		case p.changed:
			changes.Update = append(changes.Update, f.slice(p))
		}
		kept++
	}
	if kept == 0 {
		f.placeholder(&changes)
	}
	changes.Recycle(f.owns)
	t.Slices, t.Ideal, t.changed = max(kept, 1), max(t.Ideal, 1), changes.Count() // one without endpoints counts
	return changes, notes, t
}

// groups sorts the members by their ports. A group without endpoints is none.
func (f *familyPlan) groups(members []member) map[string]*group {
	groups := map[string]*group{}
	for i := range members {
		m := &members[i]
		e, ok := m.endpoint(f.service, f.family)
		if !ok {
			continue
		}
		e.Hints = nearby(f.service, &e)
		g := groups[m.portsKey]
		if g == nil {
			g = &group{ports: m.ports}
			groups[m.portsKey] = g
		}
		g.endpoints = append(g.endpoints, e)
	}
	return groups
}

// owns reports whether a slice is this Service's, and not that of an earlier Service of
// the same name.
func (f *familyPlan) owns(slice *discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(slice.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return ref.UID == f.service.UID && ref.Kind == serviceResource.Kind && ref.APIVersion == serviceResource.APIVersion()
	})
}

// placeholder keeps one slice without endpoints: it distinguishes a Service that has none
// from a Service that was not reconciled yet.
func (f *familyPlan) placeholder(changes *endpointslices.Changes) {
	for i, old := range changes.Delete {
		if f.owns(old) && len(old.Endpoints) == 0 && len(old.Ports) == 0 && maps.Equal(old.Labels, f.labels) {
			changes.Delete = slices.Delete(changes.Delete, i, i+1)
			return
		}
	}
	changes.Create = append(changes.Create, f.slice(&packing{ports: []discoveryv1.EndpointPort{}, labels: f.labels}))
}

// slice returns a packing as it is to be written.
func (f *familyPlan) slice(p *packing) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressType(f.family), Ports: p.ports, Endpoints: p.endpoints}
	if p.old != nil {
		slice.ObjectMeta = *p.old.ObjectMeta.DeepCopy()
	} else {
		slice.GenerateName = endpointslices.Prefix(f.service.Name)
		slice.Namespace = f.service.Namespace
		slice.OwnerReferences = []metav1.OwnerReference{owned.By(f.service, serviceResource.GroupVersionKind())}
	}
	slice.Labels = p.labels
	return slice
}

// labelsOf returns the labels of the slices of a Service: the Service's own, and three
// that name their owner, which no other client may set.
func labelsOf(service *corev1.Service) map[string]string {
	all := maps.Clone(service.Labels)
	if all == nil {
		all = map[string]string{}
	}
	delete(all, corev1.IsHeadlessService)
	if serviceendpoints.Headless(service) {
		all[corev1.IsHeadlessService] = ""
	}
	all[discoveryv1.LabelServiceName] = service.Name
	all[discoveryv1.LabelManagedBy] = Manager
	return all
}

// stamp writes into slices to which change they are the answer. One that answers no
// change with a time must not keep the time of an older one.
func stamp(changes *endpointslices.Changes, trigger time.Time) {
	text, ok := serviceendpoints.Annotation(trigger)
	for _, slice := range slices.Concat(changes.Create, changes.Update) {
		if !ok {
			delete(slice.Annotations, corev1.EndpointsLastChangeTriggerTime)
			continue
		}
		if slice.Annotations == nil {
			slice.Annotations = map[string]string{}
		}
		slice.Annotations[corev1.EndpointsLastChangeTriggerTime] = text
	}
}
