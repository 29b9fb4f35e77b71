// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	resourcev1 "k8s.io/api/resource/v1"
)

// Newest returns the slices of a pool that count: those of its newest generation. A driver
// that changes a pool raises the generation, and slices of earlier ones are left over.
func Newest(pool []*resourcev1.ResourceSlice) (newest []*resourcev1.ResourceSlice) {
	for _, slice := range pool {
		switch {
		case len(newest) == 0 || slice.Spec.Pool.Generation == newest[0].Spec.Pool.Generation:
			newest = append(newest, slice)
		case slice.Spec.Pool.Generation > newest[0].Spec.Pool.Generation:
			newest = []*resourcev1.ResourceSlice{slice}
		}
	}
	return newest
}

// Find returns a device of a pool with its slice, or nil. pool has the slices that count.
func Find(pool []*resourcev1.ResourceSlice, device string) (*resourcev1.ResourceSlice, *resourcev1.Device) {
	for _, slice := range pool {
		for i := range slice.Spec.Devices {
			if slice.Spec.Devices[i].Name == device {
				return slice, &slice.Spec.Devices[i]
			}
		}
	}
	return nil, nil
}
