// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcepoolstatusrequest

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/controllers"
)

// answers are the metrics of requests that are answered.
// Source: k8s.io/kubernetes/pkg/controller/resourcepoolstatusrequest/metrics.
type answers struct {
	controllers.Metrics

	total, failed *prometheus.CounterVec
	seconds       *prometheus.HistogramVec
}

func newAnswers() *answers {
	m := &answers{}
	m.total = m.Counter("resourcepoolstatusrequest_controller_requests_processed_total", "Attempts to answer a ResourcePoolStatusRequest, failed ones included.", "driver_name")
	m.failed = m.Counter("resourcepoolstatusrequest_controller_request_processing_errors_total", "Attempts to answer a ResourcePoolStatusRequest that failed.", "driver_name")
	m.seconds = m.Histogram("resourcepoolstatusrequest_controller_request_processing_duration_seconds", "Time that an attempt to answer a ResourcePoolStatusRequest took.",
		prometheus.ExponentialBuckets(0.001, 2, 15), "driver_name")
	return m
}

// add counts an attempt to answer a request about a driver, with the error of the write.
func (m *answers) add(driver string, began time.Time, err error) {
	m.total.WithLabelValues(driver).Inc()
	m.seconds.WithLabelValues(driver).Observe(time.Since(began).Seconds())
	if err != nil {
		m.failed.WithLabelValues(driver).Inc()
	}
}
