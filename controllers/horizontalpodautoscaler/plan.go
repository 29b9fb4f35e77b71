// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"errors"
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
)

// The actions of Events: a decision, and the write of a new size.
const (
	actionReconcile = "Reconcile"
	actionRescale   = "Rescale"
)

// snapshot is what a decision about a HorizontalPodAutoscaler depends on.
type snapshot struct {
	hpa     *autoscalingv2.HorizontalPodAutoscaler
	scale   *autoscalingv1.Scale
	history history
	now     time.Time

	// The rest is for a decision by metrics. pods are those that count, of all that the selector of the
	// scale selects. readings are of the metrics of the spec, in its order. selector is what is wrong
	// with the selector.
	pods     []*corev1.Pod
	readings []reading
	selector *selectorProblem

	// foreign are Pods that the selector selects and that belong to others. They are among pods, unless
	// they are ignored. annotation is what is wrong with the annotation about them.
	foreign    foreigners
	annotation string
}

// current returns how many replicas the target is to have.
func (s *snapshot) current() int32 { return s.scale.Spec.Replicas }

// least returns how many replicas there must be at least.
func (s *snapshot) least() int32 {
	if s.hpa.Spec.MinReplicas != nil {
		return *s.hpa.Spec.MinReplicas
	}
	return 1 // the API's default
}

// plan is what is to be done about a HorizontalPodAutoscaler.
type plan struct {
	// replicas is how many the target should have, and rescale that this is to be written. why is
	// for the Event.
	replicas int32
	rescale  bool
	why      string
	// decided is set if replicas is known, and resized if the target has that size by a write of
	// this run.
	decided, resized bool
	measurements     []measurement // of the metrics of the spec, in its order

	// Of the status, the methods scaled and notScaled complete what depends on the write.
	status autoscalingv2.HorizontalPodAutoscalerStatus
	// history is what the next decision looks back on. nil leaves it as it is.
	history *history
	events  events.List
	reasons []controller.Reason
	// err is why some metrics, or all of them, are not known.
	err error

	now time.Time
}

// byMetrics reports whether the metrics decide, and not the bounds of the spec alone.
func (o *Options) byMetrics(s *snapshot) bool {
	current := s.current()
	if current == 0 {
		return o.returns(s)
	}
	return current <= s.hpa.Spec.MaxReplicas && current >= s.least()
}

// returns reports whether a target without replicas may get some: this controller took them away,
// and either a metric that is not of its Pods can ask for some, or there must be some.
func (o *Options) returns(s *snapshot) bool {
	if o.KeepZero || !isTrue(s.hpa.Status.Conditions, autoscalingv2.ScaledToZero) {
		return false
	}
	return s.least() != 0 || measuresOthers(s.hpa)
}

// measuresOthers reports whether there is a metric that is not of the Pods of the target.
func measuresOthers(hpa *autoscalingv2.HorizontalPodAutoscaler) bool {
	for _, m := range hpa.Spec.Metrics {
		if m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType {
			return true
		}
	}
	return false
}

// decide returns what is to be done. It changes nothing.
// Source of what happens, its reasons and its texts: k8s.io/kubernetes/pkg/controller/podautoscaler,
// reconcileAutoscaler.
func (o *Options) decide(s *snapshot) plan {
	p := plan{status: *s.hpa.Status.DeepCopy(), history: &s.history, now: s.now}
	p.set(autoscalingv2.AbleToScale, true, "SucceededGetScale", "the HPA controller was able to get the target's current scale")
	if s.annotation != "" {
		p.events.Warning(eventAnnotation, actionReconcile, "%s", s.annotation)
		p.because(codeAnnotation, "Pods of other workloads count, although there is an annotation about them: {error}", "the annotation changes", "error", s.annotation)
	}
	current := s.current()
	if current > 0 && isTrue(p.status.Conditions, autoscalingv2.ScaledToZero) {
		// Another client has scaled it up. If it is at zero again later, by a user, it stays there: that is how users turn
		// the scaling off. In upstream the condition stays, and the metrics bring the target back.
		p.notAtZero()
	}
	switch {
	case o.byMetrics(s):
		if !o.follow(s, &p) {
			return p
		}
	case current == 0:
		p.stayAtZero(s, o.KeepZero)
	case current > s.hpa.Spec.MaxReplicas:
		p.replicas, p.why = s.hpa.Spec.MaxReplicas, "Current number of replicas above Spec.MaxReplicas"
		p.status.CurrentMetrics = nil
	default:
		p.replicas, p.why = s.least(), "Current number of replicas below Spec.MinReplicas"
		p.status.CurrentMetrics = nil
	}
	p.rescale, p.decided = p.replicas != current, true
	p.status.CurrentReplicas, p.status.DesiredReplicas = current, p.replicas
	o.observe(s, &p)
	return p
}

// observe notes in the status which generation of the spec it is about.
func (o *Options) observe(s *snapshot, p *plan) {
	p.status.ObservedGeneration = nil
	if !o.IgnoreGeneration {
		p.status.ObservedGeneration = &s.hpa.Generation
	}
}

// stayAtZero leaves a target without replicas as it is.
func (p *plan) stayAtZero(s *snapshot, keep bool) {
	p.replicas = 0
	p.status.CurrentMetrics = nil
	p.set(autoscalingv2.ScalingActive, false, "ScalingDisabled", "scaling is disabled since the replica count of the target is zero")
	if keep {
		p.unset(autoscalingv2.ScaledToZero)
	}
	p.because(codeDisabled, "the target {target} has 0 replicas, and this controller did not remove them", "a user gives it replicas",
		"target", targetOf(s.hpa))
}

// follow decides by the metrics. It returns false if nothing can be decided.
func (o *Options) follow(s *snapshot, p *plan) bool {
	if s.selector != nil {
		p.inactive(s.selector.reason, s.selector.message)
		p.events.Warning(s.selector.event, actionReconcile, "%s", s.selector.text)
		p.because(codeSelector, "the target {target} cannot be scaled by metrics: {error}", s.selector.ends, "target", targetOf(s.hpa), "error", s.selector.text)
		p.err = errors.New(s.selector.text)
		p.status.CurrentMetrics = nil
	} else if recommended, name := o.combine(s, p); recommended >= 0 {
		o.fit(s, p, recommended, name)
		return true
	}
	p.status.CurrentReplicas = s.current()
	o.observe(s, p)
	p.events.Warning("FailedComputeMetricsReplicas", actionReconcile, "%s", p.err.Error())
	return false
}

// combine returns how many replicas the metrics ask for, which is what the metric says that asks for
// most. If one of them is not known, the size may become larger but not smaller: then the result is -1
// instead.
func (o *Options) combine(s *snapshot, p *plan) (recommended int32, name string) {
	p.status.CurrentMetrics = make([]autoscalingv2.MetricStatus, len(s.hpa.Spec.Metrics))
	var first proposal
	failed, how := 0, ""
	for i, spec := range s.hpa.Spec.Metrics {
		is := o.propose(s, spec, s.readings[i])
		p.status.CurrentMetrics[i] = is.status
		p.measured(s, spec.Type, &is, s.readings[i].took)
		if is.err != nil {
			p.events.Warning(is.reason, actionReconcile, "%s", is.err.Error())
			if failed++; failed == 1 {
				first = is
			}
			continue
		}
		if name == "" || is.replicas > recommended {
			recommended, name, how = max(is.replicas, 0), is.name, is.how
		}
	}
	if len(s.hpa.Spec.Metrics) == 0 { // which the defaults of the API server do not leave
		failed, first = 1, proposal{err: errors.New("spec.metrics is empty"), reason: "InvalidMetricSourceType"}
	}
	if failed > 0 {
		p.err = fmt.Errorf("invalid metrics (%d invalid out of %d), first error is: %w", failed, len(s.hpa.Spec.Metrics), first.wrapped())
	}
	if failed > 0 && (failed >= len(s.hpa.Spec.Metrics) || recommended < s.current()) {
		message := fmt.Sprintf("the HPA was unable to compute the replica count: %v", first.err)
		if s.foreign.ignored && s.foreign.pods > 0 {
			message += "; " + s.foreign.String()
		}
		p.inactive(first.reason, message)
		p.because(codeMetrics, "the metrics of the target {target} are not known: {error}", "the metrics can be read", "target", targetOf(s.hpa), "error", first.err.Error())
		return -1, ""
	}
	message := "the HPA was able to successfully calculate a replica count from " + name
	if how != "" {
		message += ": " + how
	}
	if strangers := s.foreign.String(); strangers != "" {
		message += "; " + strangers
	}
	p.set(autoscalingv2.ScalingActive, true, "ValidMetricFound", message)
	return recommended, name
}

// measured notes what a metric came to. As in upstream, the action is relative to the size in the status.
func (p *plan) measured(s *snapshot, kind autoscalingv2.MetricSourceType, is *proposal, took time.Duration) {
	m := measurement{kind: kind, action: actionNone, err: is.err, took: took}
	if is.err == nil {
		m.action = actionLabel(s.hpa.Status.CurrentReplicas, is.replicas)
	}
	p.measurements = append(p.measurements, m)
}

// wrapped returns the error of a metric with what was to be read.
func (p *proposal) wrapped() error {
	err := p.err
	for _, what := range []string{p.part, p.source} {
		if what != "" {
			err = fmt.Errorf("failed to get %s: %w", what, err)
		}
	}
	return err
}

// fit applies the rules of the spec to what the metrics ask for.
func (o *Options) fit(s *snapshot, p *plan, recommended int32, name string) {
	current := s.current()
	switch {
	case recommended > current:
		p.why = name + " above target"
	case recommended < current:
		p.why = "All metrics below target"
	}
	a := ask{current: current, recommended: recommended, least: s.least(), most: s.hpa.Spec.MaxReplicas}
	is, next := o.size(s.hpa, a, s.history, s.now)
	p.history = &next
	p.replicas = is.replicas
	if p.replicas > current && recommended <= current || p.replicas < current && recommended >= current {
		p.why = is.able[1] // a recommendation of before
	}
	p.set(autoscalingv2.AbleToScale, true, is.able[0], is.able[1])
	p.set(autoscalingv2.ScalingLimited, is.replicas != is.stabilized, is.limited[0], is.limited[1])
	if current == 0 && p.replicas < s.least() {
		p.replicas = s.least() // there must be some by now
		if p.why == "" {
			p.why = "Current number of replicas below Spec.MinReplicas"
		}
	}
	p.explain(s, a, is)
}

// scaled notes that the target has its new size.
func (p *plan) scaled(s *snapshot, o *Options) {
	from := s.current()
	p.resized = true
	p.set(autoscalingv2.AbleToScale, true, "SucceededRescale", fmt.Sprintf("the HPA controller was able to update the target scale to %d", p.replicas))
	p.events.Normal("SuccessfulRescale", actionRescale, "New size: %d; reason: %s", p.replicas, p.why)
	p.status.LastScaleTime = &metav1.Time{Time: p.now}
	if s.hpa.Spec.Behavior != nil {
		next := p.history.changed(change{at: p.now, by: p.replicas - from}).prune(p.now, o.lookback(s.hpa))
		p.history = &next
	}
	switch {
	case o.KeepZero:
		p.unset(autoscalingv2.ScaledToZero)
	case p.toZero(s):
		p.atZero()
	default:
		p.notAtZero()
	}
}

// toZero reports whether the plan takes the last replicas away so that the metrics can bring them back.
func (p *plan) toZero(s *snapshot) bool {
	return s.current() > 0 && p.replicas == 0 && s.least() == 0 && measuresOthers(s.hpa)
}

// first returns the status that must be written before the new size, or false if none must. If this
// process is killed between the two writes, the next one reads in it what it needs to know:
//
//   - that the target is at zero because of its metrics. Otherwise it would stay there for ever;
//   - the size before the change, so that the change counts for the policies of spec.behavior. The
//     status has it, except before the first change and after one by another client.
func (p *plan) first(s *snapshot, o *Options) (plan, bool) {
	toZero := p.toZero(s) && !o.KeepZero
	has := len(s.hpa.Status.Conditions) > 0 && s.hpa.Status.DesiredReplicas == s.current()
	if !toZero && (has || s.hpa.Spec.Behavior == nil) {
		return plan{}, false
	}
	first := plan{status: *p.status.DeepCopy(), history: p.history, now: p.now}
	first.status.DesiredReplicas = s.current()
	if toZero {
		first.atZero()
	}
	return first, true
}

// notScaled notes that the new size was refused.
func (p *plan) notScaled(s *snapshot, err error) {
	p.set(autoscalingv2.AbleToScale, false, "FailedUpdateScale", fmt.Sprintf("the HPA controller was unable to update the target scale: %v", err))
	p.events.Warning("FailedRescale", actionRescale, "New size: %d; reason: %s; error: %v", p.replicas, p.why, err)
	p.because(codeNotWritten, "the new size of the target {target}, {replicas}, was refused: {error}", "the write succeeds",
		"target", targetOf(s.hpa), "replicas", p.replicas, "error", err.Error())
	p.status.DesiredReplicas = s.hpa.Status.DesiredReplicas
}

// maybeScaled keeps the condition that the metrics may bring the target back: the write whose answer was lost may have taken
// the last replicas away. If it did not, the next decision takes the condition back.
func (p *plan) maybeScaled(s *snapshot, o *Options) {
	if p.toZero(s) && !o.KeepZero {
		p.atZero()
	}
}

// unreadable returns the plan for a HorizontalPodAutoscaler whose target's scale cannot be read.
func unreadable(hpa *autoscalingv2.HorizontalPodAutoscaler, now time.Time, err error) plan {
	p := plan{status: *hpa.Status.DeepCopy(), now: now, err: err}
	p.set(autoscalingv2.AbleToScale, false, "FailedGetScale", fmt.Sprintf("the HPA controller was unable to get the target's current scale: %v", err))
	p.events.Warning("FailedGetScale", actionReconcile, "%s", err.Error())
	p.because(codeNoScale, "the scale of the target {target} cannot be read: {error}", "the target exists and can be scaled",
		"target", targetOf(hpa), "error", err.Error())
	return p
}
