// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"errors"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// reading is what a metrics API said about one metric of the spec.
type reading struct {
	pods  samples // of a metric that each Pod has
	value int64   // of another one, in thousandths
	err   error
	took  time.Duration // to read it
}

// proposal is what one metric of the spec asks for.
type proposal struct {
	replicas int32
	value    autoscalingv2.MetricValueStatus
	name     string // of the metric, for conditions and Events
	how      string // which Pods were counted, and how
	status   autoscalingv2.MetricStatus

	err    error
	reason string // of the condition, if there is an error
	// source and part are what was to be read. As in upstream, only the error of all metrics together says it.
	source, part string
}

// selectorError is the error of a selector of a metric. The API server does not check them. Its text stands alone, as
// upstream reads the selector before anything else.
type selectorError struct{ error }

// unable says of an error that came from a metrics API what could not be read.
func unable(err error, format string, args ...any) error {
	if bad, none := errors.AsType[selectorError](err); none {
		return bad
	}
	return fmt.Errorf("unable to get "+format+": %w", append(args, err)...)
}

// propose returns what a metric of the spec asks for.
//
// Reasons and texts are upstream's.
// Source: k8s.io/kubernetes/pkg/controller/podautoscaler, computeReplicasForMetric.
func (o *Options) propose(s *snapshot, spec autoscalingv2.MetricSpec, is reading) proposal {
	var p proposal
	var status autoscalingv2.MetricStatus
	switch {
	case spec.Resource != nil && spec.Type == autoscalingv2.ResourceMetricSourceType:
		m := spec.Resource
		p = o.proposeResource(s, m.Name, "", m.Target, is)
		p.reason, p.source = "FailedGetResourceMetric", fmt.Sprintf("%s resource metric value", m.Name)
		status.Resource = &autoscalingv2.ResourceMetricStatus{Name: m.Name, Current: p.value}
	case spec.ContainerResource != nil && spec.Type == autoscalingv2.ContainerResourceMetricSourceType:
		m := spec.ContainerResource
		p = o.proposeResource(s, m.Name, m.Container, m.Target, is)
		p.reason, p.source = "FailedGetContainerResourceMetric", fmt.Sprintf("%s container metric value", m.Container)
		status.ContainerResource = &autoscalingv2.ContainerResourceMetricStatus{Name: m.Name, Container: m.Container, Current: p.value}
	case spec.Pods != nil && spec.Type == autoscalingv2.PodsMetricSourceType:
		m := spec.Pods
		p = o.proposePods(s, m, is)
		p.reason, p.source = "FailedGetPodsMetric", "pods metric value"
		status.Pods = &autoscalingv2.PodsMetricStatus{Metric: m.Metric, Current: p.value}
	case spec.Object != nil && spec.Type == autoscalingv2.ObjectMetricSourceType:
		m := spec.Object
		p = o.proposeObject(s, m, is)
		p.reason, p.source = "FailedGetObjectMetric", "object metric value"
		status.Object = &autoscalingv2.ObjectMetricStatus{Metric: m.Metric, DescribedObject: m.DescribedObject, Current: p.value}
	case spec.External != nil && spec.Type == autoscalingv2.ExternalMetricSourceType:
		m := spec.External
		p = o.proposeExternal(s, m, is)
		p.reason, p.source = "FailedGetExternalMetric", fmt.Sprintf("%s external metric value", m.Metric.Name)
		status.External = &autoscalingv2.ExternalMetricStatus{Metric: m.Metric, Current: p.value}
	default:
		return proposal{err: specError{fmt.Errorf("unknown metric source type %q", spec.Type)}, reason: "InvalidMetricSourceType"}
	}
	if p.err == nil { // a metric that failed has an empty status
		p.status, p.status.Type = status, spec.Type
	}
	return p
}

// proposeResource returns what a resource of the Pods, or of one of their containers, asks for.
func (o *Options) proposeResource(s *snapshot, of corev1.ResourceName, container string, target autoscalingv2.MetricTarget, is reading) proposal {
	byValue := target.AverageValue != nil
	switch {
	case !byValue && target.AverageUtilization == nil:
		return proposal{err: errors.New("invalid resource metric source: neither an average utilization target nor an average value (usage) target was set")}
	case is.err != nil && byValue:
		return proposal{err: fmt.Errorf("failed to get %s usage: unable to get metrics for resource %s: %w", of, of, is.err)}
	case is.err != nil:
		return proposal{err: fmt.Errorf("failed to get %s utilization: unable to get metrics for resource %s: %w", of, of, is.err)}
	}
	c := o.count(s.pods, of, is.pods, s.now)
	if byValue {
		p, err := c.byValue(s.current(), milli(*target.AverageValue), o.tolerancesOf(s.hpa))
		if err != nil {
			return proposal{err: fmt.Errorf("failed to get %s usage: %w", of, err)}
		}
		return proposal{
			replicas: p.replicas, name: fmt.Sprintf("%s resource", of), how: c.String(),
			value: autoscalingv2.MetricValueStatus{AverageValue: quantity(of, p.average)},
		}
	}
	p, err := c.byUtilization(s.current(), *target.AverageUtilization, o.tolerancesOf(s.hpa), of, container)
	if err != nil {
		return proposal{err: fmt.Errorf("failed to get %s utilization: %w", of, err)}
	}
	name := "resource"
	if container != "" {
		name = "container resource"
	}
	return proposal{
		replicas: p.replicas, name: fmt.Sprintf("%s %s utilization (percentage of request)", of, name), how: c.String(),
		value: autoscalingv2.MetricValueStatus{AverageUtilization: &p.percent, AverageValue: quantity(of, p.average)},
	}
}

// proposePods returns what a custom metric of the Pods asks for.
func (o *Options) proposePods(s *snapshot, m *autoscalingv2.PodsMetricSource, is reading) proposal {
	switch {
	case m.Target.AverageValue == nil:
		return proposal{err: errors.New("invalid pods metric source: no average value target was set")}
	case is.err != nil:
		return proposal{err: unable(is.err, "metric %s", m.Metric.Name)}
	}
	c := o.count(s.pods, "", is.pods, s.now)
	p, err := c.byValue(s.current(), milli(*m.Target.AverageValue), o.tolerancesOf(s.hpa))
	if err != nil {
		return proposal{err: err}
	}
	return proposal{
		replicas: p.replicas, name: "pods metric " + m.Metric.Name, how: c.String() + negative(p.average),
		value: autoscalingv2.MetricValueStatus{AverageValue: decimal(p.average)},
	}
}

// proposeObject returns what a metric of an object asks for.
func (o *Options) proposeObject(s *snapshot, m *autoscalingv2.ObjectMetricSource, is reading) proposal {
	byValue := m.Target.Type == autoscalingv2.ValueMetricType && m.Target.Value != nil
	byShare := m.Target.Type == autoscalingv2.AverageValueMetricType && m.Target.AverageValue != nil
	of := m.DescribedObject
	if bad, none := errors.AsType[selectorError](is.err); none { // whatever the target is
		return proposal{err: bad}
	}
	if is.err != nil {
		is.err = unable(is.err, "metric %s on %s %s/%s", m.Metric.Name, of.Kind, s.hpa.Namespace, of.Name)
	}
	switch {
	case byValue:
		p := o.proposeValue(s, m.Target.Value, is)
		p.name = fmt.Sprintf("%s metric %s", of.Kind, m.Metric.Name)
		return p
	case byShare:
		p := o.proposeShare(s, m.Target.AverageValue, is)
		p.name = externalName(m.Metric) // which is what upstream calls it
		p.part = m.Metric.Name + " object metric"
		return p
	}
	return proposal{err: errors.New("invalid object metric source: neither a value target nor an average value target was set")}
}

// proposeExternal returns what an external metric asks for.
func (o *Options) proposeExternal(s *snapshot, m *autoscalingv2.ExternalMetricSource, is reading) (p proposal) {
	name := m.Metric.Name
	if is.err != nil {
		is.err = unable(is.err, "external metric %s/%s/%+v", s.hpa.Namespace, name, m.Metric.Selector)
	}
	switch {
	case m.Target.AverageValue != nil:
		p = o.proposeShare(s, m.Target.AverageValue, is)
		p.part = name + " external metric"
	case m.Target.Value != nil:
		p = o.proposeValue(s, m.Target.Value, is)
		p.part = "external metric " + name
	default:
		p.err = errors.New("invalid external metric source: neither a value target nor an average value target was set")
	}
	p.name = externalName(m.Metric)
	return p
}

// proposeValue returns what a value asks for whose target is for all replicas together.
func (o *Options) proposeValue(s *snapshot, target *resource.Quantity, is reading) proposal {
	if is.err == nil && target.Sign() <= 0 {
		is.err = errTarget
	}
	if is.err != nil {
		return proposal{err: is.err}
	}
	replicas, err := byRatio(s.current(), float64(is.value)/float64(milli(*target)), o.tolerancesOf(s.hpa), s.pods)
	if err != nil {
		return proposal{err: err}
	}
	return proposal{
		replicas: replicas, how: fmt.Sprintf("%s running and ready", pods(readyPods(s.pods))) + negative(is.value),
		value: autoscalingv2.MetricValueStatus{Value: decimal(is.value)},
	}
}

// proposeShare returns what a value asks for whose target is for each replica.
func (o *Options) proposeShare(s *snapshot, target *resource.Quantity, is reading) proposal {
	if is.err == nil && target.Sign() <= 0 {
		is.err = errTarget
	}
	if is.err != nil {
		return proposal{err: is.err}
	}
	replicas, share := byShare(s.scale.Status.Replicas, is.value, milli(*target), o.tolerancesOf(s.hpa))
	return proposal{
		replicas: replicas, how: fmt.Sprintf("shared by %s of the target's status", pods(int(s.scale.Status.Replicas))) + negative(is.value),
		value: autoscalingv2.MetricValueStatus{AverageValue: decimal(share)},
	}
}

// negative says of a value below 0 that it is one. It counts, as in upstream: a custom metric may be any
// number. One that is negative by mistake would otherwise take all replicas away without a word.
func negative(value int64) string {
	if value >= 0 {
		return ""
	}
	return fmt.Sprintf(", and the value %s is negative, so it asks for the fewest", decimal(value))
}

// externalName returns the name of an external metric as upstream writes it.
func externalName(m autoscalingv2.MetricIdentifier) string {
	return fmt.Sprintf("external metric %s(%+v)", m.Name, m.Selector)
}

// decimal returns thousandths as a quantity for a status.
func decimal(thousandths int64) *resource.Quantity { return quantity("", thousandths) }
