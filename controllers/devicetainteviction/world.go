// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devicetainteviction

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/devices"
)

// world is the cluster's devices: the claims that they are allocated to, and their taints.
type world struct {
	claims   cache.SharedInformer[*resourcev1.ResourceClaim]
	byDevice cache.Index[*resourcev1.ResourceClaim] // allocated ones, by the values of their devices
	slices   cache.SharedInformer[*resourcev1.ResourceSlice]
	byPool   cache.Index[*resourcev1.ResourceSlice]
	rules    cache.SharedInformer[*resourcev1.DeviceTaintRule]
	noRules  bool // rules is not used
}

func newWorld(h controller.Host, noRules bool) *world {
	w := &world{
		claims:  cache.Informer[*resourcev1.ResourceClaim](h),
		slices:  cache.Informer[*resourcev1.ResourceSlice](h),
		noRules: noRules,
	}
	w.byDevice = cache.NewIndex(w.claims, func(item cache.Item[*resourcev1.ResourceClaim]) ([]string, error) {
		claim, err := item.Object()
		if err != nil {
			return nil, err
		}
		return valuesOf(claim), nil
	})
	w.byPool = cache.NewIndex(w.slices, func(item cache.Item[*resourcev1.ResourceSlice]) ([]string, error) {
		slice, err := item.Object()
		if err != nil {
			return nil, err
		}
		return []string{poolValue(slice.Spec.Driver, slice.Spec.Pool.Name)}, nil
	})
	if !noRules {
		w.rules = cache.Informer[*resourcev1.DeviceTaintRule](h)
	}
	return w
}

// The values of the index of claims. A name of a driver, a pool or a device has no space.
const everyDevice = "all"

func driverValue(driver string) string     { return "driver " + driver }
func poolValue(driver, pool string) string { return driver + " " + pool }
func deviceValue(d devices.ID) string      { return d.Driver + " " + d.Pool + " " + d.Device }

// valuesOf returns the values under which a claim is found: those of each of its devices, of their
// pools and drivers, and the one of all allocated claims.
func valuesOf(claim *resourcev1.ResourceClaim) []string {
	if claim.Status.Allocation == nil {
		return nil
	}
	values := []string{everyDevice}
	for i := range claim.Status.Allocation.Devices.Results {
		d := devices.IDOf(&claim.Status.Allocation.Devices.Results[i])
		for _, value := range []string{driverValue(d.Driver), poolValue(d.Driver, d.Pool), deviceValue(d)} {
			if !slices.Contains(values, value) {
				values = append(values, value)
			}
		}
	}
	return values
}

// ruleValue returns the value with the fewest claims that has all claims whose devices a rule
// selects. some is false if it selects none.
func ruleValue(rule *resourcev1.DeviceTaintRule) (value string, some bool) {
	s := rule.Spec.DeviceSelector
	switch {
	case s == nil:
		return "", false
	case s.Driver == nil:
		return everyDevice, true
	case s.Pool == nil:
		return driverValue(*s.Driver), true
	case s.Device == nil:
		return poolValue(*s.Driver, *s.Pool), true
	}
	return deviceValue(devices.ID{Driver: *s.Driver, Pool: *s.Pool, Device: *s.Device}), true
}

// allOf returns all slices of a pool, those of earlier generations included.
func (w *world) allOf(driver, pool string) (all []*resourcev1.ResourceSlice) {
	for _, item := range w.byPool.Find(poolValue(driver, pool)) {
		if slice, err := item.Object(); err == nil { // the index has logged the others
			all = append(all, slice)
		}
	}
	return all
}

// rulesNow returns the rules that have been seen.
func (w *world) rulesNow() (all []*resourcev1.DeviceTaintRule) {
	if w.noRules {
		return nil
	}
	for _, item := range w.rules.All() {
		if rule, err := item.Object(); err == nil {
			all = append(all, rule)
		}
	}
	return all
}

// tainted returns the devices of a slice with a NoExecute taint.
func tainted(slice *resourcev1.ResourceSlice) (all []devices.ID) {
	for _, device := range slice.Spec.Devices {
		if slices.ContainsFunc(device.Taints, func(t resourcev1.DeviceTaint) bool { return t.Effect == resourcev1.DeviceTaintEffectNoExecute }) {
			all = append(all, devices.ID{Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Device: device.Name})
		}
	}
	return all
}
