// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/internal/endpointslices"
	"github.com/setpoint-io/setpoint/internal/serviceendpoints"
	"github.com/setpoint-io/setpoint/object"
)

// sliceMetrics are the metrics of the controller.
// Source: k8s.io/endpointslice/metrics.
type sliceMetrics struct {
	*endpointslices.Metrics

	changed *prometheus.HistogramVec
	syncs   *prometheus.CounterVec
}

// Values of the label result. A run is stale if a slice is another one than the cache has shown.
const (
	resultSuccess = "success"
	resultStale   = "stale"
	resultError   = "error"
)

// Values of the label topology: whether endpoints are shared out to the zones.
const (
	topologyAuto     = "Auto"
	topologyDisabled = "Disabled"
)

func newMetrics(r *reconciler) *sliceMetrics {
	const subsystem = "endpoint_slice_controller"
	m := &sliceMetrics{Metrics: endpointslices.NewMetrics(subsystem)}
	m.changed = m.Histogram(subsystem+"_endpointslices_changed_per_sync", "EndpointSlices that a run writes.", prometheus.DefBuckets,
		"topology", "traffic_distribution")
	m.syncs = m.Counter(subsystem+"_syncs", "Runs of Services.", "result")
	byDistribution := cache.NewIndex(r.services, func(item cache.Item[*corev1.Service]) ([]string, error) {
		service, err := item.Object()
		if err != nil || !serviceendpoints.Selects(service) {
			return nil, err
		}
		if r.onlyPreferClose {
			service = withoutPreferSame(service)
		}
		if distribution := distributionOf(service); distribution != "" {
			return []string{distribution}, nil
		}
		return nil, nil
	})
	m.GaugesFunc(subsystem+"_services_count_by_traffic_distribution", "Services with a preference for near endpoints.",
		[]string{"traffic_distribution"}, func(set func(float64, ...string)) {
			for distribution, n := range byDistribution.Values(r.services.Snapshot()) {
				set(float64(n), distribution)
			}
		})
	return m
}

// distributionOf returns the preference of a Service by which its endpoints have hints, or "".
func distributionOf(service *corev1.Service) string {
	d := service.Spec.TrafficDistribution
	if d == nil || asksForBalance(service.Annotations) {
		return ""
	}
	switch *d {
	case corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode:
		return *d
	}
	return ""
}

// planned notes what a run is going to do.
func (m *sliceMetrics) planned(service object.Key, all []tally) {
	tallies := make([]endpointslices.Tally, len(all))
	for i := range all {
		tallies[i] = all[i].Tally
	}
	m.Observe(service, tallies...)
}

// written notes what a run has written.
func (m *sliceMetrics) written(service *corev1.Service, all []tally) {
	topology := topologyDisabled
	if asksForBalance(service.Annotations) {
		topology = topologyAuto
	}
	for _, t := range all {
		m.changed.WithLabelValues(topology, distributionOf(service)).Observe(float64(t.changed))
	}
}

// ran counts a run.
func (m *sliceMetrics) ran(err error) {
	result := resultSuccess
	switch {
	case apierrors.IsConflict(err):
		result = resultStale
	case err != nil:
		result = resultError
	}
	m.syncs.WithLabelValues(result).Inc()
}
