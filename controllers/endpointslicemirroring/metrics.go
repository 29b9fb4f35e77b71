// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslicemirroring

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/internal/endpointslices"
	"github.com/setpoint-io/setpoint/object"
)

// mirrorMetrics are the metrics of the controller.
// Source: k8s.io/kubernetes/pkg/controller/endpointslicemirroring/metrics.
type mirrorMetrics struct {
	*endpointslices.Metrics

	updated, skipped, seconds *prometheus.HistogramVec
}

func newMetrics() *mirrorMetrics {
	const subsystem = "endpoint_slice_mirroring_controller"
	m := &mirrorMetrics{Metrics: endpointslices.NewMetrics(subsystem)}
	m.updated = m.Count(subsystem+"_endpoints_updated_per_sync", "Endpoints that a run changes in slices.")
	m.skipped = m.Count(subsystem+"_addresses_skipped_per_sync", "Addresses that a run does not mirror: they are no IP addresses, or too many.")
	m.seconds = m.Histogram(subsystem+"_endpoints_sync_duration", "How long a run took, in seconds.", prometheus.ExponentialBuckets(0.001, 2, 15))
	return m
}

// planned notes what a run is going to do for mirrored Endpoints.
func (m *mirrorMetrics) planned(endpoints object.Key, tally endpointslices.Tally, left skipped) {
	m.Observe(endpoints, tally)
	m.updated.WithLabelValues().Observe(float64(tally.Updated))
	m.skipped.WithLabelValues().Observe(float64(left.invalid + left.tooMany))
}

// took notes the end of a run.
func (m *mirrorMetrics) took(begin time.Time) {
	m.seconds.WithLabelValues().Observe(time.Since(begin).Seconds())
}
