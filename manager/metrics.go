// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/workqueue"
)

// collectors are the parts that have metrics of their own.
func (m *Manager) collectors() []prometheus.Collector {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []prometheus.Collector
	for _, part := range m.parts {
		if c, ok := part.(prometheus.Collector); ok {
			all = append(all, c)
		}
	}
	return all
}

// queueStats are those of all parts that are controllers. No two parts have one name.
func (m *Manager) queueStats() []workqueue.Stats {
	var all []workqueue.Stats
	for _, c := range m.loops() {
		s := c.Status(0).Queue
		s.Name = c.Name()
		all = append(all, s)
	}
	return all
}

// election collects what there is to say of the lease and of the controllers. The name of
// the first is that of Kubernetes components.
// Source: k8s.io/component-base/metrics/prometheus/clientgo/leaderelection.
type election struct{ manager *Manager }

var (
	leads = prometheus.NewDesc("leader_election_master_status", "1 while this process holds the lease for certain, 0 while it stands by.",
		[]string{"name"}, nil)
	renewals = prometheus.NewDesc("setpoint_lease_renewals_total", "Renewals of the lease that succeeded.", []string{"name"}, nil)
	troubles = prometheus.NewDesc("setpoint_lease_failures_total", "Requests about the lease that failed.", []string{"name"}, nil)
	changes  = prometheus.NewDesc("setpoint_lease_transitions", "Changes of the holder, as the lease counts them.", []string{"name"}, nil)
	failed   = prometheus.NewDesc("setpoint_controller_failures_total", "Runs that failed.", []string{"controller"}, nil)
	givenUp  = prometheus.NewDesc("setpoint_controller_given_up_total", "Keys that were given up, to be left alone until something changes.",
		[]string{"controller"}, nil)
	panics = prometheus.NewDesc("setpoint_controller_panics_total", "Panics that were contained: of reconcilers, mappings, predicates and feeds.",
		[]string{"controller"}, nil)
	held = prometheus.NewDesc("setpoint_controller_waiting_for_own_writes",
		"Keys that are held back until informers have seen what was written for them.", []string{"controller"}, nil)
)

// Describe makes it a prometheus.Collector.
func (election) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{leads, renewals, troubles, changes, failed, givenUp, panics, held} {
		out <- d
	}
}

// Collect makes it a prometheus.Collector.
func (e election) Collect(out chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, t prometheus.ValueType, value float64, label string) {
		out <- prometheus.MustNewConstMetric(d, t, value, label)
	}
	m := e.manager
	if m.elector != nil {
		s, name, leading := m.elector.Status(), m.election.Key.Name, 0.0
		if term := m.fence.term.Load(); term != nil && term.Certain() == nil {
			leading = 1
		}
		send(leads, prometheus.GaugeValue, leading, name)
		send(renewals, prometheus.CounterValue, float64(s.Renewals), name)
		send(troubles, prometheus.CounterValue, float64(s.Failures), name)
		send(changes, prometheus.GaugeValue, float64(s.Transitions), name)
	}
	for _, c := range m.loops() {
		s := c.Status(0)
		send(failed, prometheus.CounterValue, float64(s.Failures), c.Name())
		send(givenUp, prometheus.CounterValue, float64(s.GivenUp), c.Name())
		send(panics, prometheus.CounterValue, float64(panicked(s)), c.Name())
		send(held, prometheus.GaugeValue, float64(len(s.Waiting)), c.Name())
	}
}
