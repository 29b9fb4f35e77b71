// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeipam

import "github.com/prometheus/client_golang/prometheus"

// counts are the metrics of the pools, by network. Names, labels and buckets are upstream's,
// "cirdset" included.
// Source: k8s.io/kubernetes/pkg/controller/nodeipam/ipam/cidrset, metrics.go.
type counts struct {
	allocations, releases *prometheus.CounterVec
	most, usage           *prometheus.GaugeVec
	tries                 *prometheus.HistogramVec
}

func newCounts() *counts {
	const subsystem = "node_ipam_controller"
	labels := []string{"clusterCIDR"}
	return &counts{
		allocations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Subsystem: subsystem, Name: "cidrset_cidrs_allocations_total", Help: "Ranges that came into use, those that were found in use at the start included.",
		}, labels),
		releases: prometheus.NewCounterVec(prometheus.CounterOpts{
			Subsystem: subsystem, Name: "cidrset_cidrs_releases_total", Help: "Ranges that became free.",
		}, labels),
		most: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Subsystem: subsystem, Name: "cirdset_max_cidrs", Help: "How many ranges the network has.",
		}, labels),
		usage: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Subsystem: subsystem, Name: "cidrset_usage_cidrs", Help: "The share of the ranges that are used, from 0 to 1.",
		}, labels),
		tries: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Subsystem: subsystem, Name: "cidrset_allocation_tries_per_request", Help: "Used ranges that were passed over to find a free one.",
			Buckets: prometheus.ExponentialBuckets(1, 5, 5),
		}, labels),
	}
}

// begin shows a pool, with the ranges that have addresses of Services.
func (c *counts) begin(p *pool) {
	c.most.WithLabelValues(p.network.String()).Set(float64(p.size))
	c.releases.WithLabelValues(p.network.String())
	c.allocated(p, p.count)
}

func (c *counts) allocated(p *pool, ranges int) {
	c.allocations.WithLabelValues(p.network.String()).Add(float64(ranges))
	c.show(p)
}

func (c *counts) released(p *pool, ranges int) {
	c.releases.WithLabelValues(p.network.String()).Add(float64(ranges))
	c.show(p)
}

func (c *counts) searched(p *pool, tries int) {
	c.tries.WithLabelValues(p.network.String()).Observe(float64(tries))
}

func (c *counts) show(p *pool) {
	c.usage.WithLabelValues(p.network.String()).Set(float64(p.count) / float64(p.size))
}

func (c *counts) all() []prometheus.Collector {
	return []prometheus.Collector{c.allocations, c.releases, c.most, c.usage, c.tries}
}

// Describe makes the counts a prometheus.Collector.
func (c *counts) Describe(out chan<- *prometheus.Desc) {
	for _, each := range c.all() {
		each.Describe(out)
	}
}

// Collect makes the counts a prometheus.Collector.
func (c *counts) Collect(out chan<- prometheus.Metric) {
	for _, each := range c.all() {
		each.Collect(out)
	}
}
