// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/controllers"
)

// newSkew declares the metric of kube-controller-manager.
// Source: k8s.io/kubernetes/pkg/controller/cronjob/metrics.
func newSkew(m *controllers.Metrics) prometheus.Observer {
	return m.Histogram("cronjob_controller_job_creation_skew_duration_seconds",
		"Time from the start that a CronJob has scheduled to the creation of its Job.", prometheus.ExponentialBuckets(1, 2, 10)).WithLabelValues()
}
