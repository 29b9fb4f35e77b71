// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcepoolstatusrequest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	"k8s.io/apimachinery/pkg/api/resource"
)

// maxItems is how many items the lists of a status may have. A longer list is a validation error.
// Source: k8s.io/kubernetes/pkg/controller/resourcepoolstatusrequest, maxStatusListItems.
const maxItems = 32

// device is a device with the attribute that its partition type is in, "" without one.
type device struct {
	*resourcev1.Device
	attribute string
}

// devices returns the devices of a pool. A slice names the attribute of its own devices. The one
// of the request is for a pool of which no slice names any.
func (p *pool) devices(byRequest *string) (all []device) {
	fallback := ""
	if byRequest != nil && !slices.ContainsFunc(p.slices, func(s *resourcev1.ResourceSlice) bool { return attributeOf(s) != "" }) {
		fallback = *byRequest
	}
	for _, slice := range p.slices {
		attribute := attributeOf(slice)
		if attribute == "" {
			attribute = fallback
		}
		for i := range slice.Spec.Devices {
			all = append(all, device{&slice.Spec.Devices[i], attribute})
		}
	}
	return all
}

func attributeOf(slice *resourcev1.ResourceSlice) string {
	if slice.Spec.PartitionTypeAttribute == nil {
		return ""
	}
	return string(*slice.Spec.PartitionTypeAttribute)
}

// partitionType returns the type of a device, and whether it has one. The domain of an attribute
// may be left out if it is the driver's.
func (d device) partitionType(driver string) (string, bool) {
	value, ok := d.Attributes[resourcev1.QualifiedName(d.attribute)]
	if !ok {
		if bare, ofDriver := strings.CutPrefix(d.attribute, driver+"/"); ofDriver {
			value, ok = d.Attributes[resourcev1.QualifiedName(bare)]
		}
	}
	if !ok || value.StringValue == nil {
		return "", false
	}
	return *value.StringValue, true
}

// group is the partitions of one type.
type group struct {
	attribute, name string
	total           int32
	cost            string   // of each, as text
	free            []device // that no claim has
}

// partitions returns how many more partitions of each type fit, or what is wrong with the pool.
func (p *pool) partitions(all []device) ([]resourcev1alpha3.PartitionTypeStatus, *string) {
	driver := p.slices[0].Spec.Driver
	if !slices.ContainsFunc(all, func(d device) bool { return d.attribute != "" }) {
		return nil, nil
	}
	left := p.countersLeft(all)
	if len(left) == 0 {
		return nil, flaw("PartitionTypeMissing: pool %s/%s declares partitionTypeAttribute but publishes no sharedCounters", driver, p.name)
	}
	groups, broken := p.groups(all)
	if broken != nil {
		return nil, broken
	}
	if len(groups) > maxItems {
		return nil, flaw("PartitionSummaryOverCap: pool %s/%s has %d partition types, exceeding the maximum of %d", driver, p.name, len(groups), maxItems)
	}
	var summary []resourcev1alpha3.PartitionTypeStatus
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		g := groups[key]
		summary = append(summary, resourcev1alpha3.PartitionTypeStatus{Attribute: g.attribute, Type: g.name, Total: &g.total, Allocatable: new(g.fits(left))})
	}
	return summary, nil
}

// groups returns the partitions of a pool by their attribute and type. A device that consumes no
// counters is no partition.
func (p *pool) groups(all []device) (map[string]*group, *string) {
	driver := p.slices[0].Spec.Driver
	groups := map[string]*group{}
	for _, d := range all {
		if len(d.ConsumesCounters) == 0 || d.attribute == "" {
			continue
		}
		name, ok := d.partitionType(driver)
		if !ok {
			return nil, flaw("PartitionTypeMissing: device %q in pool %s/%s does not carry partition type attribute %q", d.Name, driver, p.name, d.attribute)
		}
		key, cost := d.attribute+"\x00"+name, costOf(d.ConsumesCounters)
		g := groups[key]
		if g == nil {
			g = &group{attribute: d.attribute, name: name, cost: cost}
			groups[key] = g
		}
		if g.cost != cost {
			return nil, flaw("PartitionCostMismatch: devices of partition type %q in pool %s/%s consume different counters", name, driver, p.name)
		}
		g.total++
		if !p.used.devices[d.Name] {
			g.free = append(g.free, d)
		}
	}
	return groups, nil
}

// fits returns how many of the free partitions fit into counters, one after the other. Each type
// is measured alone.
func (g *group) fits(left counters) (n int32) {
	left = left.clone()
	for _, d := range g.free {
		if left.covers(d.ConsumesCounters) {
			left.take(d.ConsumesCounters)
			n++
		}
	}
	return n
}

// counters are amounts by the name of their set and their own.
type counters map[[2]string]resource.Quantity

// countersLeft returns what the devices that claims have leave of the counters of a pool. A device
// that several claims share counts once.
func (p *pool) countersLeft(all []device) counters {
	left := counters{}
	for _, slice := range p.slices {
		for _, set := range slice.Spec.SharedCounters {
			for name, counter := range set.Counters {
				left[[2]string{set.Name, name}] = counter.Value.DeepCopy()
			}
		}
	}
	for _, d := range all {
		if p.used.devices[d.Name] {
			left.take(d.ConsumesCounters)
		}
	}
	return left
}

func (c counters) clone() counters {
	all := counters{}
	for name, amount := range c {
		all[name] = amount.DeepCopy()
	}
	return all
}

// covers reports whether there is as much as a device consumes.
func (c counters) covers(cost []resourcev1.DeviceCounterConsumption) bool {
	for _, of := range cost {
		for name, counter := range of.Counters {
			if have, ok := c[[2]string{of.CounterSet, name}]; !ok || have.Cmp(counter.Value) < 0 {
				return false
			}
		}
	}
	return true
}

func (c counters) take(cost []resourcev1.DeviceCounterConsumption) {
	for _, of := range cost {
		for name, counter := range of.Counters {
			if have, ok := c[[2]string{of.CounterSet, name}]; ok {
				have.Sub(counter.Value)
				c[[2]string{of.CounterSet, name}] = have
			}
		}
	}
}

// costOf writes what a device consumes, so that two devices can be compared.
func costOf(cost []resourcev1.DeviceCounterConsumption) string {
	var parts []string
	for _, of := range cost {
		for name, counter := range of.Counters {
			parts = append(parts, fmt.Sprintf("%s/%s=%s", of.CounterSet, name, counter.Value.String()))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
