// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/serviceendpoints"
)

// capacity is how many addresses Endpoints show at most.
// Source: k8s.io/kubernetes/pkg/controller/endpoint, maxCapacity.
const capacity = 1000

// truncate leaves out addresses beyond the capacity: first those that are not ready,
// and of those of one kind a part of each subset in proportion to its size. It reports
// whether it left anything out. The subsets are in order, so that the same are left
// out each time.
func truncate(subsets []corev1.EndpointSubset) (_ []corev1.EndpointSubset, cut bool) {
	ready, notReady := 0, 0
	for i := range subsets {
		ready += len(subsets[i].Addresses)
		notReady += len(subsets[i].NotReadyAddresses)
	}
	if ready+notReady <= capacity {
		return subsets, false
	}
	for i, room := 0, max(0, capacity-ready); i < len(subsets); i++ {
		s := &subsets[i]
		n := min(room, portion(len(s.NotReadyAddresses), notReady, capacity-ready))
		s.NotReadyAddresses = s.NotReadyAddresses[:n]
		room -= n
	}
	for i, room := 0, capacity; i < len(subsets); i++ {
		s := &subsets[i]
		n := min(room, portion(len(s.Addresses), ready, capacity))
		s.Addresses = s.Addresses[:n]
		room -= n
	}
	// Subsets that have nothing left go, and two that differed in what was left out
	// become one.
	return serviceendpoints.Repack(subsets), true
}

// portion returns how many of n stay where most of all do: in proportion, rounded up.
func portion(n, all, most int) int {
	if all <= most {
		return n
	}
	if most <= 0 {
		return 0
	}
	return (n*most + all - 1) / all
}
