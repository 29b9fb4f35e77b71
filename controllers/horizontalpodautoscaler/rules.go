// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// rules are those of spec.behavior.
type rules struct{ up, down direction }

// direction is the rules for one direction.
type direction struct {
	window   time.Duration
	choose   autoscalingv2.ScalingPolicySelect
	policies []autoscalingv2.HPAScalingPolicy
}

// rulesOf returns the rules of spec.behavior, or nil if it is not set. The API server sets the
// defaults, except the window of the way down, whose default is a flag.
func (o *Options) rulesOf(hpa *autoscalingv2.HorizontalPodAutoscaler) *rules {
	behavior := hpa.Spec.Behavior
	if behavior == nil {
		return nil
	}
	return &rules{up: directionOf(behavior.ScaleUp, 0), down: directionOf(behavior.ScaleDown, o.DownscaleStabilization)}
}

func directionOf(in *autoscalingv2.HPAScalingRules, window time.Duration) direction {
	d := direction{window: window, choose: autoscalingv2.MaxChangePolicySelect}
	if in == nil { // which the defaults of the API server do not leave
		return d
	}
	if in.StabilizationWindowSeconds != nil {
		d.window = time.Duration(*in.StabilizationWindowSeconds) * time.Second
	}
	if in.SelectPolicy != nil {
		d.choose = *in.SelectPolicy
	}
	d.policies = in.Policies
	return d
}

// highest returns how many replicas the policies allow at most.
// Source: k8s.io/kubernetes/pkg/controller/podautoscaler, calculateScaleUpLimitWithScalingRules.
func (d direction) highest(current int32, h history, now time.Time) int32 {
	switch {
	case d.choose == autoscalingv2.DisabledPolicySelect:
		return current
	case len(d.policies) == 0:
		return math.MaxInt32
	}
	limit := d.each(h.starts(current, now, true), func(start int64, p autoscalingv2.HPAScalingPolicy) float64 {
		if p.Type == autoscalingv2.PodsScalingPolicy {
			return float64(start + int64(p.Value))
		}
		// It is rounded up: a small percentage of few replicas must add one, or none is ever added.
		return math.Ceil(float64(start) * (1 + float64(p.Value)/100))
	}, d.choose != autoscalingv2.MinChangePolicySelect)
	return max(limit, current)
}

// lowest returns how many replicas the policies leave at least.
// Source: k8s.io/kubernetes/pkg/controller/podautoscaler, calculateScaleDownLimitWithBehaviors.
func (d direction) lowest(current int32, h history, now time.Time) int32 {
	switch {
	case d.choose == autoscalingv2.DisabledPolicySelect:
		return current
	case len(d.policies) == 0:
		return 0
	}
	limit := d.each(h.starts(current, now, false), func(start int64, p autoscalingv2.HPAScalingPolicy) float64 {
		if p.Type == autoscalingv2.PodsScalingPolicy {
			return float64(start - int64(p.Value))
		}
		return math.Trunc(float64(start) * (1 - float64(p.Value)/100))
	}, d.choose == autoscalingv2.MinChangePolicySelect)
	return min(limit, current)
}

// each returns the largest or the smallest of what the policies propose. start returns how many replicas
// there were at the start of the period of a policy.
func (d direction) each(start func(period time.Duration) int64, propose func(int64, autoscalingv2.HPAScalingPolicy) float64, largest bool) int32 {
	var limit int32
	for i, p := range d.policies {
		proposed := toReplicas(propose(start(time.Duration(p.PeriodSeconds)*time.Second), p))
		switch {
		case i == 0:
			limit = proposed
		case largest:
			limit = max(limit, proposed)
		default:
			limit = min(limit, proposed)
		}
	}
	return limit
}

// starts returns how many replicas there were at the start of periods that end now.
func (h history) starts(current int32, now time.Time, up bool) func(time.Duration) int64 {
	return func(period time.Duration) int64 { return h.startOfPeriod(current, now.Add(-period), up) }
}
