// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcepoolstatusrequest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/devices"
)

// view is what the answer to a request depends on.
type view struct {
	request *resourcev1alpha3.ResourcePoolStatusRequest
	slices  []*resourcev1.ResourceSlice // of the driver
	claims  []*resourcev1.ResourceClaim
	rules   []*resourcev1.DeviceTaintRule
}

// maxError is how many bytes of a validation error the API takes.
const maxError = 256

// answer returns the status of a request, and the pools that lack slices. It changes nothing.
// Source of conditions and messages: k8s.io/kubernetes/pkg/controller/resourcepoolstatusrequest.
func answer(v view, now time.Time) (status resourcev1alpha3.ResourcePoolStatusRequestStatus, incomplete []string) {
	pools := poolsOf(v)
	status.PoolCount = new(int32(len(pools)))
	limit := resourcev1alpha3.ResourcePoolStatusRequestLimitDefault
	if v.request.Spec.Limit != nil {
		limit = *v.request.Spec.Limit
	}
	names := slices.Sorted(maps.Keys(pools))
	flawed := 0
	for _, name := range names[:min(len(names), int(limit))] {
		p := pools[name]
		if !p.complete() {
			incomplete = append(incomplete, name)
		}
		of := p.status(v)
		if of.ValidationError != nil {
			flawed++
		}
		status.Pools = append(status.Pools, of)
	}
	message := fmt.Sprintf("Calculated status for %d pools", len(status.Pools))
	if flawed > 0 {
		message += fmt.Sprintf(" (%d incomplete)", flawed)
	}
	status.Conditions = []metav1.Condition{{
		Type: resourcev1alpha3.ResourcePoolStatusRequestConditionComplete, Status: metav1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(now), Reason: "CalculationComplete", Message: message,
	}}
	return status, incomplete
}

// pool is a pool of a driver.
type pool struct {
	name   string
	slices []*resourcev1.ResourceSlice // those that count
	used   use
}

// use is what claims have of a pool, except by admin access.
type use struct {
	devices  map[string]bool
	capacity map[resourcev1.QualifiedName]resource.Quantity
}

// poolsOf returns the pools that a request is about, by their names.
func poolsOf(v view) map[string]*pool {
	all := map[string][]*resourcev1.ResourceSlice{}
	for _, slice := range v.slices {
		if name := slice.Spec.Pool.Name; v.request.Spec.PoolName == nil || *v.request.Spec.PoolName == "" || *v.request.Spec.PoolName == name {
			all[name] = append(all[name], slice)
		}
	}
	pools := map[string]*pool{}
	for name, of := range all {
		slices.SortFunc(of, func(a, b *resourcev1.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
		pools[name] = &pool{name: name, slices: devices.Newest(of), used: use{map[string]bool{}, map[resourcev1.QualifiedName]resource.Quantity{}}}
	}
	for _, claim := range v.claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			p := pools[result.Pool]
			if p == nil || result.Driver != v.request.Spec.Driver || result.AdminAccess != nil && *result.AdminAccess {
				continue
			}
			p.used.devices[result.Device] = true
			for name, amount := range result.ConsumedCapacity {
				p.used.capacity[name] = sum(p.used.capacity[name], amount)
			}
		}
	}
	return pools
}

// status returns the part of the answer about one pool.
func (p *pool) status(v view) resourcev1alpha3.PoolStatus {
	first := p.slices[0]
	s := resourcev1alpha3.PoolStatus{Driver: first.Spec.Driver, PoolName: p.name, Generation: first.Spec.Pool.Generation, NodeName: p.node()}
	if !p.complete() {
		s.ValidationError = flaw("PoolIncomplete: pool %s/%s is incomplete: observed %d/%d slices at generation %d",
			s.Driver, p.name, len(p.slices), first.Spec.Pool.ResourceSliceCount, s.Generation)
		return s
	}
	total, unavailable := 0, 0
	for _, slice := range p.slices {
		for i := range slice.Spec.Devices {
			total++
			if p.unavailable(&slice.Spec.Devices[i], v.rules) {
				unavailable++
			}
		}
	}
	allocated := len(p.used.devices)
	s.ResourceSliceCount = new(int32(len(p.slices)))
	s.TotalDevices, s.AllocatedDevices, s.UnavailableDevices = new(int32(total)), new(int32(allocated)), new(int32(unavailable))
	s.AvailableDevices = new(int32(max(0, total-allocated-unavailable)))

	all := p.devices(v.request.Spec.DefaultPartitionTypeAttribute)
	partitions, broken := p.partitions(all)
	shared, tooMany := p.shareable(all)
	if s.ShareableSummary = shared; broken == nil {
		broken = tooMany
	}
	if s.ValidationError = broken; broken == nil {
		s.PartitionSummary = partitions
	}
	return s
}

// complete reports whether the driver has published all slices.
func (p *pool) complete() bool {
	return int64(len(p.slices)) >= p.slices[0].Spec.Pool.ResourceSliceCount
}

// node returns the node that all slices of the pool are for, or nil.
func (p *pool) node() *string {
	of := p.slices[0].Spec.NodeName
	for _, slice := range p.slices {
		if name := slice.Spec.NodeName; name == nil || *name == "" || *name != *of {
			return nil
		}
	}
	return new(*of)
}

// unavailable reports whether a taint keeps Pods off a device.
func (p *pool) unavailable(device *resourcev1.Device, rules []*resourcev1.DeviceTaintRule) bool {
	keepsOff := func(effect resourcev1.DeviceTaintEffect) bool {
		return effect == resourcev1.DeviceTaintEffectNoSchedule || effect == resourcev1.DeviceTaintEffectNoExecute
	}
	id := devices.ID{Driver: p.slices[0].Spec.Driver, Pool: p.name, Device: device.Name}
	return slices.ContainsFunc(device.Taints, func(t resourcev1.DeviceTaint) bool { return keepsOff(t.Effect) }) ||
		slices.ContainsFunc(rules, func(r *resourcev1.DeviceTaintRule) bool {
			return keepsOff(r.Spec.Taint.Effect) && devices.Selects(r, id)
		})
}

// flaw returns a validation error, cut to what the API takes.
func flaw(format string, args ...any) *string {
	text := fmt.Sprintf(format, args...)
	return new(text[:min(len(text), maxError)])
}

func sum(a, b resource.Quantity) resource.Quantity {
	a = a.DeepCopy()
	a.Add(b)
	return a
}
