// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/controllers"
)

// Deletions are the metrics of a controller that evicts Pods. Add is safe for concurrent use.
type Deletions struct {
	total   prometheus.Counter
	seconds prometheus.Observer
}

// DeletionsOf declares the metrics among those of a controller. Their names begin with the
// subsystem.
// Source: k8s.io/kubernetes/pkg/controller/tainteviction/metrics and
// k8s.io/kubernetes/pkg/controller/devicetainteviction/metrics.
func DeletionsOf(m *controllers.Metrics, subsystem string) *Deletions {
	buckets := []float64{0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240}
	return &Deletions{
		total:   m.Counter(subsystem+"_pod_deletions_total", "Pods that were evicted.").WithLabelValues(),
		seconds: m.Histogram(subsystem+"_pod_deletion_duration_seconds", "The time from the moment when a Pod had to go to its deletion.", buckets).WithLabelValues(),
	}
}

// Add counts a Pod that was deleted now and had to go at a time.
func (d *Deletions) Add(due time.Time) {
	d.total.Inc()
	d.seconds.Observe(time.Since(due).Seconds())
}
