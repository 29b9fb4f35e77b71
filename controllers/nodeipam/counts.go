// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeipam

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/controllers"
)

// counts are the metrics of the pools, by network. Names, labels and buckets are upstream's,
// "cirdset" included.
// Source: k8s.io/kubernetes/pkg/controller/nodeipam/ipam/cidrset, metrics.go.
type counts struct {
	controllers.Metrics

	allocations, releases *prometheus.CounterVec
	most, usage           *prometheus.GaugeVec
	tries                 *prometheus.HistogramVec
}

func newCounts() *counts {
	const network = "clusterCIDR"
	c := &counts{}
	c.allocations = c.Counter("node_ipam_controller_cidrset_cidrs_allocations_total",
		"Ranges that came into use, those that were found in use at the start included.", network)
	c.releases = c.Counter("node_ipam_controller_cidrset_cidrs_releases_total", "Ranges that became free.", network)
	c.most = c.Gauge("node_ipam_controller_cirdset_max_cidrs", "How many ranges the network has.", network)
	c.usage = c.Gauge("node_ipam_controller_cidrset_usage_cidrs", "The share of the ranges that are used, from 0 to 1.", network)
	c.tries = c.Histogram("node_ipam_controller_cidrset_allocation_tries_per_request", "Used ranges that were passed over to find a free one.",
		prometheus.ExponentialBuckets(1, 5, 5), network)
	return c
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
