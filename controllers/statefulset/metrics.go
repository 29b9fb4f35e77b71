// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/setpoint-io/setpoint/controller/podlimits"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// gauges are the metrics of kube-controller-manager that this controller has. Without maxUnavailable
// they have no values.
// Source: k8s.io/kubernetes/pkg/controller/statefulset/metrics.
type gauges struct {
	controllers.Metrics

	most *prometheus.GaugeVec // Pods that may be unavailable
	are  *prometheus.GaugeVec // Pods that are unavailable
}

// The labels.
const (
	labelNamespace = "statefulset_namespace"
	labelName      = "statefulset_name"
	labelPolicy    = "pod_management_policy"
)

func newGauges() *gauges {
	g := &gauges{}
	g.most = g.Gauge("statefulset_controller_statefulset_max_unavailable", "Pods that a rollout may make unavailable.", labelNamespace, labelName, labelPolicy)
	g.are = g.Gauge("statefulset_controller_statefulset_unavailable_replicas", "Pods that are unavailable.", labelNamespace, labelName, labelPolicy)
	return g
}

// decided shows what a run has found.
func (g *gauges) decided(set *appsv1.StatefulSet, p *plan) {
	labels := []string{set.Namespace, set.Name, string(set.Spec.PodManagementPolicy)}
	if limits, err := podlimits.StatefulSet(set); err == nil {
		g.most.WithLabelValues(labels...).Set(float64(max(limits.Unavailable, 1))) // 1 is for other strategies
	}
	if p.unavailable != nil {
		g.are.WithLabelValues(labels...).Set(float64(*p.unavailable))
	}
}

// forget drops the series of a StatefulSet that is gone.
func (g *gauges) forget(key object.Key) {
	of := prometheus.Labels{labelNamespace: key.Namespace, labelName: key.Name}
	g.most.DeletePartialMatch(of)
	g.are.DeletePartialMatch(of)
}
