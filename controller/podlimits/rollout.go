// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podlimits

import (
	"math"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits is how many Pods an owner may have during a rollout.
type Limits struct {
	Desired     int32 // Pods that the owner wants
	Surge       int32 // Pods above Desired
	Unavailable int32 // Pods that may be missing from Desired, or not be available
	Partition   int32 // Pods of the lowest ordinals, which are not replaced; of a StatefulSet
}

// Most returns the highest number of Pods.
func (l Limits) Most() int32 {
	return int32(min(int64(l.Desired)+int64(l.Surge), math.MaxInt32))
}

// Least returns the lowest number of available Pods.
func (l Limits) Least() int32 { return max(l.Desired-l.Unavailable, 0) }

// Deployment returns the limits of a Deployment. With the strategy Recreate, no Pod is above
// the desired number, and none may be unavailable: Recreate removes all Pods at once, and no
// limit applies.
func Deployment(d *appsv1.Deployment) (Limits, error) {
	l := Limits{Desired: replicas(d.Spec.Replicas)}
	if d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		return l, nil
	}
	if rolling := d.Spec.Strategy.RollingUpdate; rolling != nil {
		path := field.NewPath("spec", "strategy", "rollingUpdate")
		if err := l.resolve(path, rolling.MaxSurge, rolling.MaxUnavailable, down); err != nil {
			return Limits{}, err
		}
	}
	l.move()
	l.Unavailable = min(l.Unavailable, l.Desired)
	return l, nil
}

// DaemonSet returns the limits of a DaemonSet that wants a Pod on each of a number of nodes.
// With the strategy OnDelete, no Pod is above the desired number, and none may be
// unavailable.
//
// Unavailable can exceed Desired: nodes on which Pods may stay, but not be created, have Pods
// to replace too.
func DaemonSet(set *appsv1.DaemonSet, nodes int32) (Limits, error) {
	l := Limits{Desired: nodes}
	strategy := set.Spec.UpdateStrategy
	if strategy.Type != appsv1.RollingUpdateDaemonSetStrategyType {
		return l, nil
	}
	if rolling := strategy.RollingUpdate; rolling != nil {
		path := field.NewPath("spec", "updateStrategy", "rollingUpdate")
		if err := l.resolve(path, rolling.MaxSurge, rolling.MaxUnavailable, up); err != nil {
			return Limits{}, err
		}
	}
	if nodes > 0 {
		l.move()
	}
	return l, nil
}

// StatefulSet returns the limits of a StatefulSet. It has no surge, as an ordinal has one Pod.
// With the strategies OnDelete and Recreate, none may be unavailable. The partition also decides from which
// revision a Pod is created, so it is returned for each strategy.
func StatefulSet(set *appsv1.StatefulSet) (Limits, error) {
	l := Limits{Desired: replicas(set.Spec.Replicas)}
	strategy := set.Spec.UpdateStrategy
	var unavailable *intstr.IntOrString
	if rolling := strategy.RollingUpdate; rolling != nil {
		unavailable = rolling.MaxUnavailable
		if rolling.Partition != nil {
			l.Partition = max(*rolling.Partition, 0)
		}
	}
	if strategy.Type != appsv1.RollingUpdateStatefulSetStrategyType {
		return l, nil
	}
	path := field.NewPath("spec", "updateStrategy", "rollingUpdate")
	if err := l.resolve(path, nil, unavailable, down); err != nil {
		return Limits{}, err
	}
	l.move()
	return l, nil
}

// resolve reads the two fields of a rolling update. Surge rounds up for every kind.
func (l *Limits) resolve(rolling *field.Path, surge, unavailable *intstr.IntOrString, round rounding) error {
	var err error
	if l.Surge, err = scale(rolling.Child("maxSurge"), surge, l.Desired, up); err != nil {
		return err
	}
	l.Unavailable, err = scale(rolling.Child("maxUnavailable"), unavailable, l.Desired, round)
	return err
}

// move lets one Pod be unavailable if no Pod could be replaced otherwise. It is not one more
// Pod instead, as a quota can refuse that.
func (l *Limits) move() {
	if l.Surge == 0 && l.Unavailable == 0 {
		l.Unavailable = 1
	}
}

// replicas returns the number in spec.replicas, whose default is 1.
func replicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return max(*n, 0)
}
