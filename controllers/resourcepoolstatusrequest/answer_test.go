// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcepoolstatusrequest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func request(change ...func(*resourcev1alpha3.ResourcePoolStatusRequestSpec)) *resourcev1alpha3.ResourcePoolStatusRequest {
	r := &resourcev1alpha3.ResourcePoolStatusRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: resourcev1alpha3.ResourcePoolStatusRequestSpec{Driver: "gpu.example.com"},
	}
	for _, f := range change {
		f(&r.Spec)
	}
	return r
}

// slice returns a slice of a pool of one slice with some devices.
func slice(pool string, devices ...resourcev1.Device) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: pool}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.example.com", NodeName: new("n"), Pool: resourcev1.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: 1}, Devices: devices,
	}}
}

func claimOf(results ...resourcev1.DeviceRequestAllocationResult) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: results},
	}}}
}

func result(pool, device string) resourcev1.DeviceRequestAllocationResult {
	return resourcev1.DeviceRequestAllocationResult{Driver: "gpu.example.com", Pool: pool, Device: device}
}

func taint(effect resourcev1.DeviceTaintEffect) []resourcev1.DeviceTaint {
	return []resourcev1.DeviceTaint{{Key: "a", Effect: effect}}
}

// partition returns a device of a type that consumes memory.
func partition(name, of, memory string) resourcev1.Device {
	d := resourcev1.Device{Name: name, ConsumesCounters: []resourcev1.DeviceCounterConsumption{{
		CounterSet: "card", Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse(memory)}},
	}}}
	if of != "" {
		d.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: &of}}
	}
	return d
}

// partitioned returns a pool with a card of 8Gi.
func partitioned(devices ...resourcev1.Device) *resourcev1.ResourceSlice {
	s := slice("p", devices...)
	s.Spec.PartitionTypeAttribute = new(resourcev1.FullyQualifiedName("gpu.example.com/type"))
	s.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "card", Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse("8Gi")}}}}
	return s
}

func TestAnAnswerCountsTheDevicesOfPools(t *testing.T) {
	two := []resourcev1.Device{{Name: "a"}, {Name: "b"}}
	foreign := slice("p", two...)
	foreign.Spec.Driver = "other.example.com"
	for name, c := range map[string]struct {
		view view
		want string
	}{
		"no pools": {view{slices: nil}, `[] of 0: Calculated status for 0 pools`},
		"free":     {view{slices: []*resourcev1.ResourceSlice{slice("p", two...)}}, `[p on n: 2 total, 0 allocated, 0 unavailable, 2 available] of 1: Calculated status for 1 pools`},
		"used twice, and by an observer": {view{
			slices: []*resourcev1.ResourceSlice{slice("p", two...), slice("q", two...)},
			claims: []*resourcev1.ResourceClaim{{}, claimOf(result("p", "a")), claimOf(result("p", "a"), func() resourcev1.DeviceRequestAllocationResult {
				r := result("p", "b")
				r.AdminAccess = new(true)
				return r
			}())},
		}, `[p on n: 2 total, 1 allocated, 0 unavailable, 1 available; q on n: 2 total, 0 allocated, 0 unavailable, 2 available] of 2: Calculated status for 2 pools`},
		"tainted": {view{
			slices: []*resourcev1.ResourceSlice{slice("p", resourcev1.Device{Name: "a", Taints: taint("NoSchedule")}, resourcev1.Device{Name: "b", Taints: taint("None")}, resourcev1.Device{Name: "c"})},
			rules: []*resourcev1.DeviceTaintRule{
				{Spec: resourcev1.DeviceTaintRuleSpec{Taint: resourcev1.DeviceTaint{Effect: "NoExecute"}}},
				{Spec: resourcev1.DeviceTaintRuleSpec{Taint: resourcev1.DeviceTaint{Effect: "NoExecute"}, DeviceSelector: &resourcev1.DeviceTaintSelector{Device: new("c")}}},
			},
		}, `[p on n: 3 total, 0 allocated, 2 unavailable, 1 available] of 1: Calculated status for 1 pools`},
		"another driver, another pool, an earlier generation": {view{
			request: request(func(s *resourcev1alpha3.ResourcePoolStatusRequestSpec) { s.PoolName = new("p") }),
			slices: []*resourcev1.ResourceSlice{slice("q", two...), slice("p", two...), func() *resourcev1.ResourceSlice {
				s := slice("p", two[0])
				s.Name, s.Spec.Pool.Generation = "newer", 2
				return s
			}()},
		}, `[p on n: 1 total, 0 allocated, 0 unavailable, 1 available] of 1: Calculated status for 1 pools`},
		"a limit": {view{
			request: request(func(s *resourcev1alpha3.ResourcePoolStatusRequestSpec) { s.Limit = new(int32(1)) }),
			slices:  []*resourcev1.ResourceSlice{slice("q"), slice("p")},
		}, `[p on n: 0 total, 0 allocated, 0 unavailable, 0 available] of 2: Calculated status for 1 pools`},
		"partitions": {view{
			slices: []*resourcev1.ResourceSlice{partitioned(partition("a", "half", "4Gi"), partition("b", "half", "4Gi"), partition("c", "whole", "8Gi"), resourcev1.Device{Name: "d"})},
			claims: []*resourcev1.ResourceClaim{claimOf(result("p", "a"))},
		}, `[p on n: 4 total, 1 allocated, 0 unavailable, 3 available, half 1/2, whole 0/1] of 1: Calculated status for 1 pools`},
		"a partition without a type": {view{slices: []*resourcev1.ResourceSlice{partitioned(partition("a", "", "4Gi"))}},
			`[p on n: 1 total, 0 allocated, 0 unavailable, 1 available, PartitionTypeMissing: device "a" in pool gpu.example.com/p does not carry partition type attribute "gpu.example.com/type"] of 1: Calculated status for 1 pools (1 incomplete)`},
		"partitions of several sizes": {view{slices: []*resourcev1.ResourceSlice{partitioned(partition("a", "half", "4Gi"), partition("b", "half", "3Gi"))}},
			`[p on n: 2 total, 0 allocated, 0 unavailable, 2 available, PartitionCostMismatch: devices of partition type "half" in pool gpu.example.com/p consume different counters] of 1: Calculated status for 1 pools (1 incomplete)`},
		"no counters": {view{
			request: request(func(s *resourcev1alpha3.ResourcePoolStatusRequestSpec) { s.DefaultPartitionTypeAttribute = new("type") }),
			slices:  []*resourcev1.ResourceSlice{slice("p", two...)},
		}, `[p on n: 2 total, 0 allocated, 0 unavailable, 2 available, PartitionTypeMissing: pool gpu.example.com/p declares partitionTypeAttribute but publishes no sharedCounters] of 1: Calculated status for 1 pools (1 incomplete)`},
		"shared devices": {view{
			slices: []*resourcev1.ResourceSlice{slice("p", func() (all []resourcev1.Device) {
				for _, name := range []string{"a", "b"} {
					all = append(all, resourcev1.Device{Name: name, AllowMultipleAllocations: new(true), Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("8Gi")}}})
				}
				return all
			}()...)},
			claims: []*resourcev1.ResourceClaim{claimOf(func() resourcev1.DeviceRequestAllocationResult {
				r := result("p", "a")
				r.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse("3Gi")}
				return r
			}())},
		}, `[p on n: 2 total, 1 allocated, 0 unavailable, 1 available, 1 whole and 1 partly, memory 13Gi of 16Gi] of 1: Calculated status for 1 pools`},
	} {
		t.Run(name, func(t *testing.T) {
			if c.view.request == nil {
				c.view.request = request()
			}
			status, incomplete := answer(c.view, time.Unix(0, 0))
			if got := text(status); got != c.want || len(incomplete) > 0 {
				t.Errorf("the answer is\n%s, want\n%s (incomplete: %q)", got, c.want, incomplete)
			}
			if _, err := json.Marshal(status); err != nil {
				t.Error(err)
			}
		})
	}
	// Slices of another driver do not reach the answer: the index leaves them out.
	status, _ := answer(view{request: request(), claims: []*resourcev1.ResourceClaim{claimOf(resourcev1.DeviceRequestAllocationResult{Driver: "other.example.com", Pool: "p", Device: "a"})},
		slices: []*resourcev1.ResourceSlice{slice("p", two...)}}, time.Unix(0, 0))
	if n := *status.Pools[0].AllocatedDevices; n != 0 {
		t.Errorf("a device of another driver counts: %d", n)
	}
}

// text writes a status for the table.
func text(status resourcev1alpha3.ResourcePoolStatusRequestStatus) string {
	var pools []string
	for _, p := range status.Pools {
		s := p.PoolName
		if p.NodeName != nil {
			s += " on " + *p.NodeName
		}
		if p.TotalDevices != nil {
			s += fmt.Sprintf(": %d total, %d allocated, %d unavailable, %d available", *p.TotalDevices, *p.AllocatedDevices, *p.UnavailableDevices, *p.AvailableDevices)
		}
		for _, of := range p.PartitionSummary {
			s += fmt.Sprintf(", %s %d/%d", of.Type, *of.Allocatable, *of.Total)
		}
		if sh := p.ShareableSummary; sh != nil {
			s += fmt.Sprintf(", %d whole and %d partly", *sh.FullyAvailableDevices, *sh.PartiallyAvailableDevices)
			for _, c := range sh.Capacity {
				s += fmt.Sprintf(", %s %s of %s", c.Name, c.Available, c.Total)
			}
		}
		if p.ValidationError != nil {
			s += ", " + *p.ValidationError
		}
		pools = append(pools, s)
	}
	return fmt.Sprintf("[%s] of %d: %s", strings.Join(pools, "; "), *status.PoolCount, status.Conditions[0].Message)
}
