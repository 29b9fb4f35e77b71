// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// Limits of the way up without spec.behavior.
// Source: k8s.io/kubernetes/pkg/controller/podautoscaler, scaleUpLimitFactor and
// scaleUpLimitMinimum.
const (
	upFactor  = 2
	upMinimum = 4
)

// Reasons of conditions, and their messages.
// Source: k8s.io/kubernetes/pkg/controller/podautoscaler.
const (
	reasonReady          = "ReadyForNewScale"
	reasonStabilizedUp   = "ScaleUpStabilized"
	reasonStabilizedDown = "ScaleDownStabilized"
	reasonWithinRange    = "DesiredWithinRange"
	reasonTooFew         = "TooFewReplicas"
	reasonTooMany        = "TooManyReplicas"
	reasonUpLimit        = "ScaleUpLimit"
	reasonDownLimit      = "ScaleDownLimit"

	messageReady          = "recommended size matches current size"
	messageStabilizedUp   = "recent recommendations were lower than current one, applying the lowest recent recommendation"
	messageStabilizedDown = "recent recommendations were higher than current one, applying the highest recent recommendation"
	messageWithinRange    = "the desired count is within the acceptable range"
	messageTooFew         = "the desired replica count is less than the minimum replica count"
	messageTooMany        = "the desired replica count is more than the maximum replica count"
	messageUpLimit        = "the desired replica count is increasing faster than the maximum scale rate"
	messageDownLimit      = "the desired replica count is decreasing faster than the maximum scale rate"
)

// ask is what the metrics ask for, and between which sizes.
type ask struct {
	current, recommended int32
	least, most          int32 // of the spec
}

// answer is a size that all rules allow.
type answer struct {
	stabilized int32 // after the windows
	replicas   int32 // after the limits

	// able and limited are a reason and a message for the conditions AbleToScale and ScalingLimited.
	able, limited [2]string
	// until is when the recommendation that holds the size leaves its window.
	until time.Time
}

// size returns how many replicas there should be, by the rules of a HorizontalPodAutoscaler, and the
// history with the recommendation.
func (o *Options) size(hpa *autoscalingv2.HorizontalPodAutoscaler, a ask, h history, now time.Time) (answer, history) {
	var is answer
	rules := o.rulesOf(hpa)
	if rules == nil {
		is = o.stabilize(a, h, now)
		is.limit(a)
	} else {
		is = rules.stabilize(a, h, now)
		rules.limit(&is, a, h, now)
	}
	return is, h.recommend(recommendation{now, a.recommended}).prune(now, o.lookback(hpa))
}

// stabilize applies the window of the way down where there is no spec.behavior: the highest
// recommendation counts.
// Source: k8s.io/kubernetes/pkg/controller/podautoscaler, stabilizeRecommendation.
func (o *Options) stabilize(a ask, h history, now time.Time) answer {
	cutoff := now.Add(-o.DownscaleStabilization)
	high, found := h.highest(func(at time.Time) bool { return !at.Before(cutoff) })
	if !found || high.replicas <= a.recommended {
		return answer{stabilized: a.recommended, able: [2]string{reasonReady, messageReady}}
	}
	return answer{
		stabilized: high.replicas, able: [2]string{reasonStabilizedDown, messageStabilizedDown},
		until: high.at.Add(o.DownscaleStabilization),
	}
}

// limit applies the limits where there is no spec.behavior.
// Source: k8s.io/kubernetes/pkg/controller/podautoscaler, convertDesiredReplicasWithRules.
func (is *answer) limit(a ask) {
	most, reason, message := a.most, reasonTooMany, messageTooMany
	if rate := toReplicas(math.Max(upFactor*float64(a.current), upMinimum)); rate < most {
		most, reason, message = rate, reasonUpLimit, messageUpLimit
	}
	switch {
	case is.stabilized < a.least:
		is.replicas, is.limited = a.least, [2]string{reasonTooFew, messageTooFew}
	case is.stabilized > most:
		is.replicas, is.limited = most, [2]string{reason, message}
	default:
		is.replicas, is.limited = is.stabilized, [2]string{reasonWithinRange, messageWithinRange}
	}
}

// stabilize applies the windows of spec.behavior: on the way up the lowest recommendation of its
// window counts, on the way down the highest, and between the two the size stays.
// Source: k8s.io/kubernetes/pkg/controller/podautoscaler, stabilizeRecommendationWithBehaviors.
func (r *rules) stabilize(a ask, h history, now time.Time) answer {
	up, down := a.recommended, a.recommended
	var upUntil, downUntil time.Time
	cutoff := now.Add(-r.up.window)
	if low, found := h.lowest(func(at time.Time) bool { return at.After(cutoff) }); found && low.replicas < up {
		up, upUntil = low.replicas, low.at.Add(r.up.window)
	}
	cutoff = now.Add(-r.down.window)
	if high, found := h.highest(func(at time.Time) bool { return at.After(cutoff) }); found && high.replicas > down {
		down, downUntil = high.replicas, high.at.Add(r.down.window)
	}
	is := answer{stabilized: min(max(a.current, up), down), able: [2]string{reasonReady, messageReady}}
	switch {
	case is.stabilized == a.recommended:
	case a.recommended >= a.current:
		is.able, is.until = [2]string{reasonStabilizedUp, messageStabilizedUp}, upUntil
	default:
		is.able, is.until = [2]string{reasonStabilizedDown, messageStabilizedDown}, downUntil
	}
	return is
}

// limit applies the policies of spec.behavior, and the bounds of the spec.
// Source: k8s.io/kubernetes/pkg/controller/podautoscaler, convertDesiredReplicasWithBehaviorRate.
func (r *rules) limit(is *answer, a ask, h history, now time.Time) {
	is.replicas, is.limited = is.stabilized, [2]string{reasonWithinRange, messageWithinRange}
	switch {
	case is.stabilized > a.current:
		most, reason, message := a.most, reasonTooMany, messageTooMany
		if rate := r.up.highest(a.current, h, now); rate < most {
			most, reason, message = rate, reasonUpLimit, messageUpLimit
		}
		if is.stabilized > most {
			is.replicas, is.limited = most, [2]string{reason, message}
		}
	case is.stabilized < a.current:
		least, reason, message := a.least, reasonTooFew, messageTooFew
		if rate := r.down.lowest(a.current, h, now); rate > least {
			least, reason, message = rate, reasonDownLimit, messageDownLimit
		}
		if is.stabilized < least {
			is.replicas, is.limited = least, [2]string{reason, message}
		}
	}
}
