// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// historyAnnotation has the history of a HorizontalPodAutoscaler, so that another process that takes
// over, and the same after a restart, keeps to the windows and policies that have begun.
//
// It is written with the status, in one request, and with a status that changes anyway: only a new
// recommendation or a change of the size needs a write of its own. It is there only while there is
// something to remember. kube-controller-manager leaves it as it is.
const historyAnnotation = "setpoint.io/scaling-history"

// saved is the form of the annotation.
type saved struct {
	// Size is how many replicas the target was to have when this was written.
	Size    int32                 `json:"size"`
	Highest []savedRecommendation `json:"highest,omitempty"`
	Lowest  []savedRecommendation `json:"lowest,omitempty"`
	Changes []savedChange         `json:"changes,omitempty"`
}

type savedRecommendation struct {
	At       time.Time `json:"at"`
	Replicas int32     `json:"replicas"`
}

type savedChange struct {
	At time.Time `json:"at"`
	By int32     `json:"by"`
	// Unsure says that the change was made before this time.
	Unsure bool `json:"unsure,omitempty"`
}

// mostSaved is the largest annotation that is read, in bytes.
const mostSaved = 64 << 10

// save returns a history as an annotation, and "" if there is nothing to remember: another process
// begins with the size that the target has.
func (h history) save(size int32) string {
	trivial := len(h.changes) == 0
	for _, r := range slices.Concat(h.high, h.low) {
		trivial = trivial && r.replicas == size
	}
	if trivial {
		return ""
	}
	s := saved{Size: size}
	for _, r := range h.high {
		s.Highest = append(s.Highest, savedRecommendation{r.at.UTC(), r.replicas})
	}
	for _, r := range h.low {
		s.Lowest = append(s.Lowest, savedRecommendation{r.at.UTC(), r.replicas})
	}
	for _, c := range h.changes {
		s.Changes = append(s.Changes, savedChange{c.at.UTC(), c.by, c.unsure})
	}
	text, err := json.Marshal(s)
	if err != nil {
		return "" // a year of five digits
	}
	return string(text)
}

// load returns the history of an annotation, and the size. Any client that may change the object may
// have written it: what cannot be used is left out, and no time is later than now.
func load(text string, now time.Time) (h history, size int32, ok bool) {
	var s saved
	if text == "" || len(text) > mostSaved || json.Unmarshal([]byte(text), &s) != nil || s.Size < 0 {
		return history{}, 0, false
	}
	at := func(t time.Time) time.Time {
		if t.After(now) {
			return now
		}
		return t
	}
	for _, r := range inTime(s.Highest, func(r savedRecommendation) time.Time { return r.At }) {
		h.high = appendAfter(h.high, recommendation{at(r.At), max(r.Replicas, 0)}, func(b recommendation) bool { return b.replicas <= r.Replicas })
	}
	for _, r := range inTime(s.Lowest, func(r savedRecommendation) time.Time { return r.At }) {
		h.low = appendAfter(h.low, recommendation{at(r.At), max(r.Replicas, 0)}, func(b recommendation) bool { return b.replicas >= r.Replicas })
	}
	for _, c := range inTime(s.Changes, func(c savedChange) time.Time { return c.At }) {
		if c.By != math.MinInt32 {
			h.changes = append(h.changes, change{at(c.At), c.By, c.Unsure})
		}
	}
	if len(h.high) == 0 || len(h.low) == 0 {
		h.high, h.low = nil, nil
	}
	return h, s.Size, true
}

// inTime returns things in the order of their times.
func inTime[T any](all []T, at func(T) time.Time) []T {
	slices.SortStableFunc(all, func(a, b T) int { return at(a).Compare(at(b)) })
	return all
}

// news reports whether a history has something that the annotation lacks: another recommendation, or
// another change. How long the newest recommendation has been the newest one is no news: a process
// that takes over counts it as one of its own.
func (h history) news(hpa *autoscalingv2.HorizontalPodAutoscaler, size int32, now time.Time, o *Options) bool {
	if h.save(size) == "" {
		return false // what is there expires by itself
	}
	was, _, ok := load(hpa.Annotations[historyAnnotation], now)
	if !ok {
		return true
	}
	back := o.lookback(hpa)
	was = was.prune(now, back)
	is := h.prune(now, back)
	sameSize := func(a, b recommendation) bool { return a.replicas == b.replicas }
	sameChange := func(a, b change) bool { return a.by == b.by }
	return !slices.EqualFunc(was.high, is.high, sameSize) || !slices.EqualFunc(was.low, is.low, sameSize) ||
		!slices.EqualFunc(was.changes, is.changes, sameChange)
}

// takeOver returns the history with which a process begins that has not seen a HorizontalPodAutoscaler
// before. current is how many replicas its target is to have.
//
//   - The annotation has the windows and periods that have begun. Its newest recommendation was
//     repeated until the other process ended, so it counts as made now.
//   - A size that is not the one of the annotation, or of the status, was changed by a process that
//     was killed before it wrote the status, or by another manager. The change counts as made when
//     the status was written for it, or now.
//   - If nothing is known of the window, the size of the target counts as recommended now, as in
//     upstream. Source: k8s.io/kubernetes/pkg/controller/podautoscaler, recordInitialRecommendation.
func (o *Options) takeOver(hpa *autoscalingv2.HorizontalPodAutoscaler, current int32, now time.Time) history {
	h, size, known := load(hpa.Annotations[historyAnnotation], now)
	if !known {
		size = hpa.Status.DesiredReplicas
		known = len(hpa.Status.Conditions) > 0
	}
	back := o.lookback(hpa)
	complete := false
	if newest, has := h.last(); has {
		complete = newest.at.After(now.Add(-max(back.up, back.down)))
		h = h.recommend(recommendation{now, newest.replicas})
	}
	if at := scaledByAnother(hpa, h); known && !at.IsZero() && hpa.Status.DesiredReplicas != size {
		// The time in the status is cut to a second.
		h, complete = h.changed(change{at: at.Add(time.Second), by: hpa.Status.DesiredReplicas - size, unsure: true}), false
		size = hpa.Status.DesiredReplicas
	}
	if known && size != current {
		h, complete = h.changed(change{at: now, by: current - size, unsure: true}), false
	}
	if !complete {
		h = h.recommend(recommendation{now, current})
	}
	if hpa.Spec.Behavior == nil {
		h.changes = nil
	}
	return h.prune(now, back)
}

// scaledByAnother returns when the target was scaled after the last change of a history, or the zero
// time.
func scaledByAnother(hpa *autoscalingv2.HorizontalPodAutoscaler, h history) time.Time {
	last := hpa.Status.LastScaleTime
	if last == nil {
		return time.Time{}
	}
	for _, c := range h.changes {
		if !c.at.Add(time.Second).Before(last.Time) {
			return time.Time{}
		}
	}
	return last.Time
}

// annotate returns the annotations of a HorizontalPodAutoscaler with a history.
func annotate(hpa *autoscalingv2.HorizontalPodAutoscaler, text string) map[string]string {
	if hpa.Annotations[historyAnnotation] == text {
		return hpa.Annotations
	}
	all := maps.Clone(hpa.Annotations)
	if text == "" {
		delete(all, historyAnnotation)
		return all
	}
	if all == nil {
		all = map[string]string{}
	}
	all[historyAnnotation] = text
	return all
}
