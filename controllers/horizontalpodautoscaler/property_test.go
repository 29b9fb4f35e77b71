// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"math"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"
)

// past is what has really happened to a target, from which the test judges: none of it comes from the
// code that is tested.
type past struct {
	sizes           []recommendation // each size, since when
	recommendations []recommendation
}

// sizeAt returns how many replicas there were at a time.
func (p *past) sizeAt(at time.Time) int32 {
	size := p.sizes[0].replicas
	for _, s := range p.sizes {
		if !s.at.After(at) {
			size = s.replicas
		}
	}
	return size
}

// extremes returns the lowest and the highest recommendation after a time.
func (p *past) extremes(after time.Time) (low, high int32) {
	low, high = math.MaxInt32, 0
	for _, r := range p.recommendations {
		if r.at.After(after) {
			low, high = min(low, r.replicas), max(high, r.replicas)
		}
	}
	return low, high
}

// judge returns what is wrong with a step from one size to another, by the documented meaning of
// spec.behavior.
func (p *past) judge(hpa *autoscalingv2.HorizontalPodAutoscaler, now time.Time, from, to int32) string {
	least, most := *hpa.Spec.MinReplicas, hpa.Spec.MaxReplicas
	rules, up := hpa.Spec.Behavior.ScaleDown, to > from
	if up {
		rules = hpa.Spec.Behavior.ScaleUp
	}
	if to == from {
		return ""
	}
	if to < least || to > most {
		return "it is outside of the bounds"
	}
	if *rules.SelectPolicy == autoscalingv2.DisabledPolicySelect {
		return "the direction is disabled"
	}
	low, high := p.extremes(now.Add(-time.Duration(*rules.StabilizationWindowSeconds) * time.Second))
	switch {
	case up && to > max(low, least):
		return "a recommendation of the window is lower"
	case !up && to < min(high, most):
		return "a recommendation of the window is higher"
	}
	allowed := 0
	for _, policy := range rules.Policies {
		start := float64(p.sizeAt(now.Add(-time.Duration(policy.PeriodSeconds) * time.Second)))
		step := float64(policy.Value)
		if policy.Type == autoscalingv2.PercentScalingPolicy {
			step = start * step / 100
		}
		if up && float64(to) <= math.Ceil(start+step) || !up && float64(to) >= math.Trunc(start-step) {
			allowed++
		}
	}
	every := *rules.SelectPolicy == autoscalingv2.MinChangePolicySelect
	if allowed == 0 || every && allowed < len(rules.Policies) {
		return "the policies do not allow it"
	}
	return ""
}

func drawRules(t *rapid.T, name string) *autoscalingv2.HPAScalingRules {
	policy := rapid.Custom(func(t *rapid.T) autoscalingv2.HPAScalingPolicy {
		return autoscalingv2.HPAScalingPolicy{
			Type:          rapid.SampledFrom([]autoscalingv2.HPAScalingPolicyType{autoscalingv2.PodsScalingPolicy, autoscalingv2.PercentScalingPolicy}).Draw(t, "type"),
			Value:         rapid.SampledFrom([]int32{1, 3, 10, 50, 100, 300}).Draw(t, "value"),
			PeriodSeconds: rapid.SampledFrom([]int32{15, 60, 300, 1800}).Draw(t, "period"),
		}
	})
	return &autoscalingv2.HPAScalingRules{
		StabilizationWindowSeconds: new(rapid.SampledFrom([]int32{0, 15, 60, 300, 3600}).Draw(t, name+" window")),
		SelectPolicy: new(rapid.SampledFrom([]autoscalingv2.ScalingPolicySelect{
			autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect,
		}).Draw(t, name+" select")),
		Policies: rapid.SliceOfN(policy, 1, 3).Draw(t, name+" policies"),
	}
}

// TestNoStepBreaksTheRulesOfBehavior follows targets for hours, through restarts between two runs and
// kills between the two writes of a run, with metrics that ask for anything.
func TestNoStepBreaksTheRulesOfBehavior(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
		o := Defaults()
		least := rapid.Int32Range(0, 5).Draw(t, "least")
		hpa := autoscaler(least, least+rapid.Int32Range(1, 40).Draw(t, "most"), func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
			hpa.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: drawRules(t, "up"), ScaleDown: drawRules(t, "down")}
			hpa.Spec.Metrics = []autoscalingv2.MetricSpec{queue("1")}
		})
		size := rapid.Int32Range(max(least, 1), hpa.Spec.MaxReplicas).Draw(t, "size")
		truth := &past{sizes: []recommendation{{start, size}}}
		now := start
		var h history
		known := false
		for range 120 {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{1, 15, 15, 15, 40, 400}).Draw(t, "wait")) * time.Second)
			if !known {
				h = o.takeOver(hpa, size, now)
			}
			recommended := rapid.Int32Range(0, 60).Draw(t, "recommended")
			s := &snapshot{
				hpa: hpa, scale: &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: size}, Status: autoscalingv1.ScaleStatus{Replicas: size}},
				history: h, now: now, readings: []reading{{value: int64(recommended) * 1000}},
			}
			o.Tolerance = 0
			p := o.decide(s)
			if o.byMetrics(s) {
				truth.recommendations = append(truth.recommendations, recommendation{now, recommended})
			}
			if wrong := truth.judge(hpa, now, size, p.replicas); p.rescale && wrong != "" {
				t.Fatalf("at %s from %d to %d, %d recommended: %s\nhistory %+v\npast %+v", now.Sub(start), size, p.replicas, recommended, wrong, h, truth)
			}
			h = *p.history
			if p.rescale {
				if first, needed := p.first(s, &o); needed {
					hpa = hpa.DeepCopy()
					hpa.Status, hpa.Annotations = first.status, annotate(hpa, h.save(size))
					s.hpa = hpa
				}
				size = p.replicas
				truth.sizes = append(truth.sizes, recommendation{now, size})
				if rapid.IntRange(0, 9).Draw(t, "killed before the status") == 0 {
					known = false
					continue
				}
				p.scaled(s, &o)
				h = *p.history
			}
			hpa = hpa.DeepCopy()
			if !equality.Semantic.DeepEqual(hpa.Status, p.status) || h.news(hpa, p.status.DesiredReplicas, now, &o) {
				hpa.Annotations = annotate(hpa, h.save(p.status.DesiredReplicas))
				hpa.Status = p.status
			}
			known = rapid.IntRange(0, 9).Draw(t, "restarted") != 0
		}
	})
}
