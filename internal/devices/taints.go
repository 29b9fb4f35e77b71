// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	resourcev1 "k8s.io/api/resource/v1"
)

// ID identifies a device in a cluster.
type ID struct{ Driver, Pool, Device string }

// String returns the ID as Events and logs have it: driver/pool/device.
func (d ID) String() string { return d.Driver + "/" + d.Pool + "/" + d.Device }

// IDOf returns the device of a result of an allocation.
func IDOf(result *resourcev1.DeviceRequestAllocationResult) ID {
	return ID{result.Driver, result.Pool, result.Device}
}

// Selects reports whether a rule is about a device. A rule without a selector is about none.
func Selects(rule *resourcev1.DeviceTaintRule, device ID) bool {
	s := rule.Spec.DeviceSelector
	return s != nil &&
		(s.Driver == nil || *s.Driver == device.Driver) &&
		(s.Pool == nil || *s.Pool == device.Pool) &&
		(s.Device == nil || *s.Device == device.Device)
}

// Tolerates reports whether a toleration is about a taint. An empty effect stands for all effects,
// and an empty key for all keys.
func Tolerates(toleration *resourcev1.DeviceToleration, taint *resourcev1.DeviceTaint) bool {
	if toleration.Effect != "" && toleration.Effect != taint.Effect || toleration.Key != "" && toleration.Key != taint.Key {
		return false
	}
	switch toleration.Operator {
	case "", resourcev1.DeviceTolerationOpEqual:
		return toleration.Value == taint.Value
	case resourcev1.DeviceTolerationOpExists:
		return true
	}
	return false
}
