// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// counts are the metrics of kube-controller-manager that this controller has.
// Source: k8s.io/kubernetes/pkg/controller/podautoscaler/monitor.
type counts struct {
	controllers.Metrics

	runs          *prometheus.CounterVec
	runTimes      *prometheus.HistogramVec
	readings      *prometheus.CounterVec
	readingTimes  *prometheus.HistogramVec
	desiredNumber *prometheus.GaugeVec
}

// newCounts declares the metrics. known returns how many HorizontalPodAutoscalers there are.
func newCounts(known func() int) *counts {
	const subsystem = "horizontal_pod_autoscaler_controller_"
	buckets := prometheus.ExponentialBuckets(0.001, 2, 15)
	c := &counts{}
	c.runs = c.Counter(subsystem+"reconciliations_total", "Runs, by what they did.", "action", "error")
	c.runTimes = c.Histogram(subsystem+"reconciliation_duration_seconds", "How long the runs took.", buckets, "action", "error")
	c.readings = c.Counter(subsystem+"metric_computation_total", "Metrics of a spec that were read, by what they ask for.", "action", "error", "metric_type")
	c.readingTimes = c.Histogram(subsystem+"metric_computation_duration_seconds", "How long it took to read a metric.", buckets, "action", "error", "metric_type")
	c.desiredNumber = c.Gauge(subsystem+"desired_replicas", "How many replicas the target should have.", "namespace", "hpa_name")
	c.GaugeFunc(subsystem+"num_horizontal_pod_autoscalers", "How many HorizontalPodAutoscalers there are.", func() float64 { return float64(known()) })
	return c
}

// The values of the label action.
const (
	actionUp   = "scale_up"
	actionDown = "scale_down"
	actionNone = "none"
)

// specError marks an error that only a change of the spec can mend.
type specError struct{ error }

// Unwrap returns the error without the mark.
func (e specError) Unwrap() error { return e.error }

// errorLabel returns the value of the label error.
func errorLabel(err error) string {
	if _, spec := errors.AsType[specError](err); spec {
		return "spec"
	}
	if err != nil {
		return "internal"
	}
	return "none"
}

// actionLabel returns the value of the label action for a change of the size.
func actionLabel(from, to int32) string {
	switch {
	case to > from:
		return actionUp
	case to < from:
		return actionDown
	}
	return actionNone
}

// measurement is what one metric of the spec came to.
type measurement struct {
	kind   autoscalingv2.MetricSourceType
	action string
	err    error
	took   time.Duration
}

// ran counts a run. err is why the run failed, if it did.
func (c *counts) ran(key object.Key, p *plan, err error, took time.Duration) {
	for _, m := range p.measurements {
		labels := []string{m.action, errorLabel(m.err), string(m.kind)}
		c.readings.WithLabelValues(labels...).Inc()
		c.readingTimes.WithLabelValues(labels...).Observe(m.took.Seconds())
	}
	if err == nil {
		err = p.err
	}
	action := actionNone
	if p.resized {
		action = actionLabel(p.status.CurrentReplicas, p.replicas)
	}
	c.runs.WithLabelValues(action, errorLabel(err)).Inc()
	c.runTimes.WithLabelValues(action, errorLabel(err)).Observe(took.Seconds())
	if p.decided && (p.resized || !p.rescale) {
		c.desiredNumber.WithLabelValues(key.Namespace, key.Name).Set(float64(p.replicas))
	}
}

// forget drops the series of a HorizontalPodAutoscaler that is gone.
func (c *counts) forget(key object.Key) { c.desiredNumber.DeleteLabelValues(key.Namespace, key.Name) }
