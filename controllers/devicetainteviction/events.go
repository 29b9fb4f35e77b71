// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devicetainteviction

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/internal/devices"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
)

// concerns chooses the events after which a Pod may have to go, or may stay: its claims are known,
// it is bound, or it goes. Events of the condition that this controller writes are not among them.
func (r *reconciler) concerns(e cache.Event[*corev1.Pod]) bool {
	if e.Kind == cache.Deleted {
		return r.planned.has(e.Key())
	}
	now, err := devices.WithClaims(e.New)
	if err != nil || now == nil {
		return err != nil // a run reports it
	}
	if e.Kind != cache.Updated {
		return true
	}
	before, err := e.Old.Object()
	return err != nil || before.Spec.NodeName != now.Spec.NodeName || podstate.Active(before) != podstate.Active(now) ||
		!slices.Equal(devices.ClaimsOf(before), devices.ClaimsOf(now))
}

// podsOfClaim adds the Pods that use a claim.
func (r *reconciler) podsOfClaim(claim cache.Item[*resourcev1.ResourceClaim], add func(object.Key)) {
	for key := range r.users.OfClaim(claim.Key()) {
		add(key)
	}
}

// reservedOrAllocated chooses claims whose devices or whose Pods are not as they were.
func reservedOrAllocated(e cache.Event[*resourcev1.ResourceClaim]) bool {
	if e.Kind != cache.Updated {
		return true
	}
	before, err := e.Old.Object()
	if err != nil {
		return true
	}
	now, err := e.New.Object()
	return err != nil || !slices.Equal(before.Status.ReservedFor, now.Status.ReservedFor) ||
		!equality.Semantic.DeepEqual(before.Status.Allocation, now.Status.Allocation)
}

// podsOfSlice adds the Pods of the devices of a pool that are tainted, in the slice or in another
// one: a slice of a new generation makes those of the earlier ones count no more.
func (r *reconciler) podsOfSlice(item cache.Item[*resourcev1.ResourceSlice], add func(object.Key)) {
	slice, err := item.Object()
	if err != nil {
		return // the informer has logged it
	}
	for _, device := range tainted(slice) {
		r.podsOfDevices(deviceValue(device), add)
	}
	for _, other := range r.world.allOf(slice.Spec.Driver, slice.Spec.Pool.Name) {
		if other.Spec.Pool.Generation == slice.Spec.Pool.Generation {
			continue
		}
		for _, device := range tainted(other) {
			r.podsOfDevices(deviceValue(device), add)
		}
	}
}

// podsOfRule adds the Pods of the devices that a rule selects.
func (r *reconciler) podsOfRule(item cache.Item[*resourcev1.DeviceTaintRule], add func(object.Key)) {
	if !item.Exists() {
		return
	}
	rule, err := item.Object()
	if err != nil || rule.Spec.Taint.Effect != resourcev1.DeviceTaintEffectNoExecute {
		return
	}
	if value, some := ruleValue(rule); some {
		r.podsOfDevices(value, add)
	}
}

// podsOfDevices adds the Pods whose claims have devices of a value of the index of claims.
func (r *reconciler) podsOfDevices(value string, add func(object.Key)) {
	for claim := range r.world.byDevice.Find(value) {
		for pod := range r.users.OfClaim(claim) {
			add(pod)
		}
	}
}

// taintsChanged chooses slices whose NoExecute taints or whose place in their pool has changed.
func taintsChanged(e cache.Event[*resourcev1.ResourceSlice]) bool {
	before, err := taintsOf(e.Old)
	if err != nil {
		return true
	}
	now, err := taintsOf(e.New)
	return err != nil || !equality.Semantic.DeepEqual(before, now)
}

// taints are what of a slice matters here. The fields are exported because the comparison of
// package equality panics over others.
type taints struct {
	Driver, Pool string
	Generation   int64
	Of           []deviceTaint
}

type deviceTaint struct {
	Device string
	Taint  resourcev1.DeviceTaint
}

func taintsOf(item cache.Item[*resourcev1.ResourceSlice]) (*taints, error) {
	if !item.Exists() {
		return nil, nil
	}
	slice, err := item.Object()
	if err != nil {
		return nil, err
	}
	t := &taints{Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Generation: slice.Spec.Pool.Generation}
	for _, device := range slice.Spec.Devices {
		for _, taint := range device.Taints {
			if taint.Effect == resourcev1.DeviceTaintEffectNoExecute {
				t.Of = append(t.Of, deviceTaint{device.Name, taint})
			}
		}
	}
	return t, nil
}
