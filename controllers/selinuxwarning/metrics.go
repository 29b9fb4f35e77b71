// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selinuxwarning

import "github.com/prometheus/client_golang/prometheus"

// conflictMetric has a series for each conflict, of both Pods. It is that of
// kube-controller-manager.
// Source: k8s.io/kubernetes/pkg/controller/volume/selinuxwarning, metrics.go.
var conflictMetric = prometheus.NewDesc("selinux_warning_controller_selinux_volume_conflict",
	"Conflict between two Pods using the same volume",
	[]string{"property", "pod1_namespace", "pod1_name", "pod1_value", "pod2_namespace", "pod2_name", "pod2_value"}, nil)

// Describe makes it a prometheus.Collector.
func (*tracker) Describe(out chan<- *prometheus.Desc) { out <- conflictMetric }

// Collect makes it a prometheus.Collector.
func (t *tracker) Collect(out chan<- prometheus.Metric) {
	for _, c := range t.all() {
		out <- prometheus.MustNewConstMetric(conflictMetric, prometheus.GaugeValue, 1, string(c.property),
			c.pod.key.Namespace, c.pod.key.Name, c.value, c.other.key.Namespace, c.other.key.Name, c.otherValue)
	}
}
