// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ttlafterfinished

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/controllers"
)

// newLate declares the metric of kube-controller-manager.
// Source: k8s.io/kubernetes/pkg/controller/ttlafterfinished/metrics.
func newLate(m *controllers.Metrics) prometheus.Observer {
	return m.Histogram("ttl_after_finished_controller_job_deletion_duration_seconds",
		"Time from the end of the TTL of a Job to its deletion.", prometheus.ExponentialBuckets(0.1, 2, 14)).WithLabelValues()
}
