// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/controllers"
)

// counts are the metrics of kube-controller-manager that this controller has.
// Source: k8s.io/kubernetes/pkg/controller/nodelifecycle, metrics.go.
type counts struct {
	controllers.Metrics

	evictions *prometheus.CounterVec
	health    *prometheus.GaugeVec
	size      *prometheus.GaugeVec
	unhealthy *prometheus.GaugeVec
	one       prometheus.Observer
	all       prometheus.Observer
}

func newCounts() *counts {
	const zone = "zone"
	c := &counts{}
	c.evictions = c.Counter("node_collector_evictions_total", "Nodes that were given a NoExecute taint.", zone)
	c.health = c.Gauge("node_collector_zone_health", "Percentage of the Nodes of a zone that are ready.", zone)
	c.size = c.Gauge("node_collector_zone_size", "Nodes of a zone.", zone)
	c.unhealthy = c.Gauge("node_collector_unhealthy_nodes_in_zone", "Nodes of a zone that are not ready.", zone)
	c.one = c.Histogram("node_collector_update_node_health_duration_seconds", "How long a run for a Node took.",
		prometheus.ExponentialBuckets(0.001, 4, 8)).WithLabelValues()
	c.all = c.Histogram("node_collector_update_all_nodes_health_duration_seconds", "How long a check of all Nodes took.",
		prometheus.ExponentialBuckets(0.01, 4, 8)).WithLabelValues()
	return c
}

// census is how many nodes of a zone count for its state, and how many of them are not ready.
type census struct {
	zone           string
	size, notReady int
}

// looked counts a check of all nodes. A zone without nodes is healthy, as upstream has it.
func (c *counts) looked(zones []census, took time.Duration) {
	c.all.Observe(took.Seconds())
	for _, z := range zones {
		label, health := zoneLabel(z.zone), 100.0
		if z.size > 0 {
			health = float64(100*(z.size-z.notReady)) / float64(z.size)
		}
		c.size.WithLabelValues(label).Set(float64(z.size))
		c.health.WithLabelValues(label).Set(health)
		c.unhealthy.WithLabelValues(label).Set(float64(z.notReady))
		c.evictions.WithLabelValues(label).Add(0) // the series is there before the first eviction
	}
}

// evicted counts a node that was given a NoExecute taint.
func (c *counts) evicted(zone string) { c.evictions.WithLabelValues(zoneLabel(zone)).Inc() }

// zoneLabel returns the value of the label for a zone, such as "eu:1". Upstream has a NUL between the colons, with which
// grep takes a page of metrics for a binary file.
// Source: k8s.io/component-helpers/node/topology, GetZoneKey.
func zoneLabel(zone string) string { return strings.Replace(zone, "/", ":", 1) }
