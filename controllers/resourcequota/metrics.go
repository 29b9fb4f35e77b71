// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

var mendedDesc = prometheus.NewDesc("setpoint_resourcequota_mended_total",
	"Objects of which the sum of a ResourceQuota had another amount than a full count. Each is a mistake in the controller.", nil, nil)

// counter counts up. It is safe for concurrent use.
type counter struct{ n atomic.Uint64 }

func (c *counter) add(n uint64) { c.n.Add(n) }

// Describe makes it a prometheus.Collector.
func (r *resourceQuotas) Describe(out chan<- *prometheus.Desc) { out <- mendedDesc }

// Collect makes it a prometheus.Collector.
func (r *resourceQuotas) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(mendedDesc, prometheus.CounterValue, float64(r.mended.n.Load()))
}
