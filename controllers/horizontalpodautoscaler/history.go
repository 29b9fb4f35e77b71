// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// history is what the rules of a HorizontalPodAutoscaler look back on: what was recommended, and
// how the number of replicas was changed. A history is not changed: its methods return another.
type history struct {
	// high has the recommendations that are higher than all later ones, and low those that are
	// lower. No other recommendation is the highest or the lowest of any window that ends now. The
	// oldest one is first, and the newest one is the last of both.
	high, low []recommendation
	// changes are the changes of the number of replicas, the oldest one first.
	changes []change
}

// recommendation is how many replicas the metrics asked for, before any limit.
type recommendation struct {
	at       time.Time
	replicas int32
}

// change is a change of the number of replicas: by how many. unsure is set if it was made before its
// time: no process has noted when.
type change struct {
	at     time.Time
	by     int32
	unsure bool
}

// mostRecommendations is how many recommendations a history keeps of each kind.
const mostRecommendations = 60

// recommend adds a recommendation.
func (h history) recommend(r recommendation) history {
	h.high = appendAfter(h.high, r, func(before recommendation) bool { return before.replicas <= r.replicas })
	h.low = appendAfter(h.low, r, func(before recommendation) bool { return before.replicas >= r.replicas })
	return h
}

// appendAfter appends a recommendation in place of the last ones that it covers.
func appendAfter(all []recommendation, r recommendation, covered func(recommendation) bool) []recommendation {
	all = slices.Clone(all)
	for len(all) > 0 && covered(all[len(all)-1]) {
		all = all[:len(all)-1]
	}
	return thin(append(all, r))
}

// thin has recommendations fit into the bound. Of the two that are closest in time, the later one
// goes, and the earlier one takes its time: so it counts for a little longer than it should, and
// the rules are stricter for as long.
func thin(all []recommendation) []recommendation {
	for len(all) > mostRecommendations {
		closest := 0
		for i := range len(all) - 2 { // the last one stays
			if all[i+1].at.Sub(all[i].at) < all[closest+1].at.Sub(all[closest].at) {
				closest = i
			}
		}
		all[closest+1].replicas = all[closest].replicas
		all = slices.Delete(all, closest, closest+1)
	}
	return all
}

// last returns the newest recommendation.
func (h history) last() (recommendation, bool) {
	if len(h.high) == 0 {
		return recommendation{}, false
	}
	return h.high[len(h.high)-1], true
}

// highest returns the highest recommendation that is within a window.
func (h history) highest(within func(time.Time) bool) (recommendation, bool) {
	return firstWithin(h.high, within)
}

// lowest returns the lowest recommendation that is within a window.
func (h history) lowest(within func(time.Time) bool) (recommendation, bool) {
	return firstWithin(h.low, within)
}

func firstWithin(all []recommendation, within func(time.Time) bool) (recommendation, bool) {
	for _, r := range all {
		if within(r.at) {
			return r, true
		}
	}
	return recommendation{}, false
}

// changed adds a change of the number of replicas.
func (h history) changed(c change) history {
	h.changes = append(slices.Clone(h.changes), c)
	return h
}

// startOfPeriod returns how many replicas there were at the start of a period, from which the
// policies of one direction count. A change of the other direction would allow a larger step, so it
// counts only if its time is known.
func (h history) startOfPeriod(current int32, start time.Time, up bool) int64 {
	replicas := int64(current)
	for _, c := range h.changes {
		if c.at.After(start) && (!c.unsure || up == (c.by > 0)) {
			replicas -= int64(c.by)
		}
	}
	return replicas
}

// prune removes what no rule looks back on any more. The newest recommendation stays.
func (h history) prune(now time.Time, l lookback) history {
	h.high, h.low = young(h.high, now.Add(-l.down)), young(h.low, now.Add(-l.up))
	h.changes = recent(h.changes, now.Add(-l.period))
	return h
}

// recent returns the changes after a time.
func recent(all []change, cutoff time.Time) []change {
	return slices.DeleteFunc(slices.Clone(all), func(c change) bool { return !c.at.After(cutoff) })
}

// young returns the recommendations since a time, and the newest one.
func young(all []recommendation, since time.Time) []recommendation {
	for len(all) > 1 && all[0].at.Before(since) {
		all = all[1:]
	}
	return all
}

// lookback is how far the rules of a HorizontalPodAutoscaler look back: by the windows at the
// recommendations, and by the longest period at the changes.
type lookback struct{ up, down, period time.Duration }

func (o *Options) lookback(hpa *autoscalingv2.HorizontalPodAutoscaler) lookback {
	rules := o.rulesOf(hpa)
	if rules == nil {
		return lookback{down: o.DownscaleStabilization}
	}
	l := lookback{up: rules.up.window, down: rules.down.window}
	for _, policies := range [][]autoscalingv2.HPAScalingPolicy{rules.up.policies, rules.down.policies} {
		for _, p := range policies {
			l.period = max(l.period, time.Duration(p.PeriodSeconds)*time.Second)
		}
	}
	return l
}
