// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/manager"
)

// MakingMetrics is [Making] of a controller that has metrics, which are in the collector once it is made.
func MakingMetrics[O any, R manager.Runnable](constructor func(controller.Host, O) (R, error), o O, into *prometheus.Collector) Make {
	return func(mgr *manager.Manager) (manager.Runnable, error) {
		c, err := constructor(mgr, o)
		if err == nil {
			*into = manager.Runnable(c).(prometheus.Collector)
		}
		return c, err
	}
}

// Series returns the series of a collector, such as name{label="value"}: the value of each counter
// and gauge, and how often each histogram was observed.
func Series(t testing.TB, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			name := f.GetName()
			if len(labels) > 0 {
				name += "{" + strings.Join(labels, ",") + "}"
			}
			all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}
