// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controllers"
)

// removals are the metrics of Pods that the controller removes.
// Source: k8s.io/kubernetes/pkg/controller/podgc/metrics.
type removals struct {
	controllers.Metrics

	attempts *prometheus.CounterVec
	failures *prometheus.CounterVec
}

func newRemovals() *removals {
	m := &removals{}
	m.attempts = m.Counter("pod_gc_collector_force_delete_pods_total", "Attempts to remove a Pod, failed ones included.", "namespace", "reason")
	m.failures = m.Counter("pod_gc_collector_force_delete_pod_errors_total", "Attempts to remove a Pod that failed.", "namespace", "reason")
	return m
}

// add counts an attempt to remove a Pod. A deletion that has stopped halfway is not counted:
// upstream has no reason for it.
func (m *removals) add(pod *corev1.Pod, why reason, err error) {
	label := labelOf(why)
	if label == "" {
		return
	}
	m.attempts.WithLabelValues(pod.Namespace, label).Inc()
	if err != nil {
		m.failures.WithLabelValues(pod.Namespace, label).Inc()
	}
}

// labelOf returns upstream's name of a reason, "" if it has none.
func labelOf(why reason) string {
	switch why {
	case surplus:
		return "terminated"
	case outOfService:
		return "out-of-service"
	case orphaned:
		return "orphaned"
	case unscheduled:
		return "unscheduled"
	case none, halfway:
	}
	return ""
}
