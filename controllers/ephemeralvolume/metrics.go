// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ephemeralvolume

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// creations counts the creations of claims. It is the metrics of kube-controller-manager.
// Source: k8s.io/kubernetes/pkg/controller/volume/ephemeral/metrics.
type creations struct {
	attempts, failures atomic.Uint64
}

var (
	attempts = prometheus.NewDesc("ephemeral_volume_controller_create_total", "Number of PersistentVolumeClaim creation requests", nil, nil)
	failures = prometheus.NewDesc("ephemeral_volume_controller_create_failures_total", "Number of PersistentVolumeClaim creation requests that failed", nil, nil)
)

// Describe makes it a prometheus.Collector.
func (*creations) Describe(out chan<- *prometheus.Desc) {
	out <- attempts
	out <- failures
}

// Collect makes it a prometheus.Collector.
func (c *creations) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(attempts, prometheus.CounterValue, float64(c.attempts.Load()))
	out <- prometheus.MustNewConstMetric(failures, prometheus.CounterValue, float64(c.failures.Load()))
}
