// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcepoolstatusrequest

import (
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	"k8s.io/apimachinery/pkg/api/resource"
)

// shareable returns the sums over the devices of a pool that several claims can share, nil if it
// has none, or what is wrong with the pool.
func (p *pool) shareable(all []device) (*resourcev1alpha3.ShareableSummaryStatus, *string) {
	var full, partial int32
	total := map[resourcev1.QualifiedName]resource.Quantity{}
	for _, d := range all {
		if d.AllowMultipleAllocations == nil || !*d.AllowMultipleAllocations {
			continue
		}
		if p.used.devices[d.Name] {
			partial++
		} else {
			full++
		}
		for name, capacity := range d.Capacity {
			total[name] = sum(total[name], capacity.Value)
		}
	}
	if full+partial == 0 {
		return nil, nil
	}
	if len(total) > maxItems {
		return nil, flaw("ShareableSummaryOverCap: pool %s/%s has %d shareable capacity keys, exceeding the maximum of %d",
			p.slices[0].Spec.Driver, p.name, len(total), maxItems)
	}
	summary := &resourcev1alpha3.ShareableSummaryStatus{FullyAvailableDevices: &full, PartiallyAvailableDevices: &partial}
	for _, name := range slices.Sorted(maps.Keys(total)) {
		of := total[name]
		consumed := p.used.capacity[name].DeepCopy()
		summary.Capacity = append(summary.Capacity, resourcev1alpha3.ShareableCapacityStatus{
			Name: string(name), Total: &of, Consumed: &consumed, Available: new(difference(of, consumed)),
		})
	}
	return summary, nil
}

// difference returns a minus b, and 0 if b is greater.
func difference(a, b resource.Quantity) resource.Quantity {
	d := a.DeepCopy()
	if d.Sub(b); d.Sign() < 0 {
		return *resource.NewQuantity(0, a.Format)
	}
	return d
}
