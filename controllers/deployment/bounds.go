// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"math"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// bounds is how many Pods a Deployment may have while it goes from one template
// to the next.
type bounds struct {
	desired     int32
	surge       int32 // Pods above desired
	unavailable int32 // Pods that may be missing from desired
}

// boundsOf resolves the strategy of a Deployment: maxSurge rounds up and
// maxUnavailable down, both of the desired number. Where both come to 0, which
// rounding can do, one Pod may be unavailable, for nothing could move otherwise.
// With Recreate both are 0.
//
// Source: k8s.io/kubernetes/pkg/controller/deployment/util, ResolveFenceposts.
func boundsOf(d *appsv1.Deployment) bounds {
	b := bounds{desired: value(d.Spec.Replicas)}
	rolling := d.Spec.Strategy.RollingUpdate
	if d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		return b
	}
	if rolling != nil {
		b.surge = resolve(rolling.MaxSurge, b.desired, true)
		b.unavailable = resolve(rolling.MaxUnavailable, b.desired, false)
	}
	if b.surge == 0 && b.unavailable == 0 {
		b.unavailable = 1
	}
	b.unavailable = min(b.unavailable, b.desired)
	return b
}

// resolve returns a number, or a percentage of total. What is neither does not
// pass the API server's validation and counts as 0.
func resolve(n *intstr.IntOrString, total int32, roundUp bool) int32 {
	if n == nil {
		return 0
	}
	resolved, err := intstr.GetScaledValueFromIntOrPercent(n, int(total), roundUp)
	if err != nil {
		return 0
	}
	return int32(min(max(resolved, 0), math.MaxInt32))
}

// most returns the highest number of Pods.
func (b bounds) most() int32 {
	return int32(min(int64(b.desired)+int64(b.surge), math.MaxInt32))
}

// least returns the lowest number of available Pods.
func (b bounds) least() int32 { return b.desired - b.unavailable }

// value returns a number of replicas. The API server fills in 1 where none is
// given.
func value(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
