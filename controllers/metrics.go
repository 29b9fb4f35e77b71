// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/controller"
)

// Metrics are the metrics of one controller, under the names, with the labels and the buckets of
// kube-controller-manager's. The zero value has none. A controller declares them before it runs:
//
//	m := &controllers.Metrics{}
//	finished := m.Counter("job_controller_jobs_finished_total", "Jobs that have ended.", "completion_mode", "result", "reason")
//	return m.Of(c), nil
//
// It is a prometheus.Collector.
type Metrics struct {
	all     []prometheus.Collector
	buckets map[string][]float64 // of the histograms, by their names
	of      *measured            // the controller, once Of has been called
}

// Counter declares a counter.
func (m *Metrics) Counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.all = append(m.all, c)
	return c
}

// Gauge declares a gauge.
func (m *Metrics) Gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	m.all = append(m.all, g)
	return g
}

// GaugeFunc declares a gauge without labels, whose value is read at each scrape. value must be safe
// for concurrent use.
func (m *Metrics) GaugeFunc(name, help string, value func() float64) {
	m.all = append(m.all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// GaugesFunc declares a gauge whose series are counted at each scrape: read calls set once for each
// series, with the values of its labels. read must be safe for concurrent use.
func (m *Metrics) GaugesFunc(name, help string, labels []string, read func(set func(value float64, labels ...string))) {
	m.all = append(m.all, &gauges{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue, read})
}

// gauges is a gauge or a counter whose series are read at each scrape.
type gauges struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(set func(value float64, labels ...string))
}

// Describe makes gauges a prometheus.Collector.
func (g *gauges) Describe(out chan<- *prometheus.Desc) { out <- g.desc }

// Collect makes gauges a prometheus.Collector.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	g.read(func(value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(g.desc, g.kind, value, labels...)
	})
}

// Histogram declares a histogram. buckets are their upper bounds.
func (m *Metrics) Histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.all = append(m.all, h)
	if m.buckets == nil {
		m.buckets = map[string][]float64{}
	}
	m.buckets[name] = buckets
	return h
}

// Buckets returns the upper bounds of the buckets of each histogram, by its name. A histogram with
// labels does not describe them before its first observation. The caller owns the map.
func (m *Metrics) Buckets() map[string][]float64 { return maps.Clone(m.buckets) }

// Describe makes Metrics a prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, c := range m.all {
		c.Describe(out)
	}
}

// Collect makes Metrics a prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	for _, c := range m.all {
		c.Collect(out)
	}
}

// Of returns a controller with the metrics, which its manager shows.
func (m *Metrics) Of(c controller.Runnable) controller.Runnable {
	m.of = &measured{c, m}
	return m.of
}

// measured is a controller with metrics.
type measured struct {
	controller.Runnable
	*Metrics
}

// Bind binds the loops of the controller to a host.
func (m *measured) Bind(h controller.Host) error {
	if c, ok := m.Runnable.(interface{ Bind(controller.Host) error }); ok {
		return c.Bind(h)
	}
	return nil
}

// Loops returns the loops of the controller, which a host shows.
func (m *measured) Loops() []controller.Loop {
	switch c := m.Runnable.(type) {
	case interface{ Loops() []controller.Loop }:
		return c.Loops()
	case controller.Loop:
		return []controller.Loop{c}
	}
	return nil
}
