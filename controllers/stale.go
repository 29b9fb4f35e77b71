// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// StaleSyncSkips declares the counter of runs that were due while their key waited until the cache
// showed an own write, by the resource of the write. The counter is read from the loops of the
// controller that Of gets. kube-controller-manager starts such a run, ends it with an error and
// tries again; here the run begins once the write has appeared.
// Source: k8s.io/kubernetes/pkg/controller/util/consistency, and the packages metrics of the
// controllers that use it.
func (m *Metrics) StaleSyncSkips(subsystem string) {
	desc := prometheus.NewDesc(subsystem+"_stale_sync_skips_total", "Runs that were due while the cache did not show an own write yet.",
		[]string{"group", "resource"}, nil)
	m.all = append(m.all, &gauges{desc, prometheus.CounterValue, func(set func(float64, ...string)) {
		if m.of == nil {
			return
		}
		sum := map[schema.GroupResource]uint64{}
		for _, loop := range m.of.Loops() {
			for resource, n := range loop.Status(0).Stale {
				sum[resource] += n
			}
		}
		for resource, n := range sum {
			set(float64(n), resource.Group, resource.Resource)
		}
	}})
}
