// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podlimits

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Budget is what a PodDisruptionBudget asks for.
type Budget struct {
	Expected int32 // Pods that there should be; the status has it as expectedPods
	Healthy  int32 // Pods of them that must stay healthy; desiredHealthy in the status
}

// Allowed returns how many Pods may be evicted while a number of them is healthy. It returns
// 0 if no Pods are expected: the first Pods of a new budget may not have been counted yet.
func (b Budget) Allowed(healthy int32) int32 {
	if b.Expected <= 0 {
		return 0
	}
	return max(healthy-b.Healthy, 0)
}

// NeedsScale reports whether a budget counts from the scales of the controllers of its Pods.
// It counts from the Pods that it selects otherwise: with a number as minAvailable, and with
// neither field.
func NeedsScale(pdb *policyv1.PodDisruptionBudget) bool {
	if pdb.Spec.MaxUnavailable != nil {
		return true
	}
	least := pdb.Spec.MinAvailable
	return least != nil && least.Type == intstr.String
}

// PodDisruptionBudget returns what a PodDisruptionBudget asks for. total is the sum of the
// scales of the controllers of its Pods, each controller counted once, if [NeedsScale] reports
// true, and the number of Pods that the budget selects otherwise.
//
// A budget with maxUnavailable does not regard minAvailable. The API server refuses objects
// that have both. A budget with neither expects no Pods and allows no disruption.
func PodDisruptionBudget(pdb *policyv1.PodDisruptionBudget, total int32) (Budget, error) {
	spec := field.NewPath("spec")
	switch {
	case pdb.Spec.MaxUnavailable != nil:
		unavailable, err := scale(spec.Child("maxUnavailable"), pdb.Spec.MaxUnavailable, total, up)
		if err != nil {
			return Budget{}, err
		}
		return Budget{Expected: total, Healthy: max(total-unavailable, 0)}, nil
	case pdb.Spec.MinAvailable != nil:
		healthy, err := scale(spec.Child("minAvailable"), pdb.Spec.MinAvailable, total, up)
		if err != nil {
			return Budget{}, err
		}
		return Budget{Expected: total, Healthy: healthy}, nil
	}
	return Budget{}, nil
}
