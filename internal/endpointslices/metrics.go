// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslices

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Tally is what a plan does about the slices of one owner, or of one family of its addresses.
type Tally struct {
	// Added, Updated and Removed are endpoints that come into slices, change in place, and go from
	// slices.
	Added, Updated, Removed int
	// Endpoints are in the slices once the plan is carried out.
	Endpoints int
	// Slices is how many slices there are then, and Ideal how many there were if each but one of a
	// set of ports were full.
	Slices, Ideal int
}

// Ideal returns how many slices some endpoints with the same ports need, if a slice holds most of
// them.
func Ideal(endpoints, most int) int { return (endpoints + most - 1) / most }

// Metrics are the metrics that the controllers of EndpointSlices have in common. It is safe for
// concurrent use.
// Source: k8s.io/endpointslice/metrics, and
// k8s.io/kubernetes/pkg/controller/endpointslicemirroring/metrics.
type Metrics struct {
	controllers.Metrics

	added, removed *prometheus.HistogramVec
	changes        *prometheus.CounterVec

	mu    sync.Mutex
	of    map[object.Key]Tally // the sums of each owner
	total Tally
}

// Values of the label operation.
const (
	operationCreate = "create"
	operationUpdate = "update"
	operationDelete = "delete"
)

// NewMetrics returns the metrics with names that begin with the subsystem.
func NewMetrics(subsystem string) *Metrics {
	m := &Metrics{of: map[object.Key]Tally{}}
	m.added = m.Count(subsystem+"_endpoints_added_per_sync", "Endpoints that a run adds to slices.")
	m.removed = m.Count(subsystem+"_endpoints_removed_per_sync", "Endpoints that a run removes from slices.")
	m.changes = m.Counter(subsystem+"_changes", "Writes of EndpointSlices.", "operation")
	m.sum(subsystem+"_endpoints_desired", "Endpoints that slices are to have.", func(t Tally) int { return t.Endpoints })
	m.sum(subsystem+"_num_endpoint_slices", "EndpointSlices.", func(t Tally) int { return t.Slices })
	m.sum(subsystem+"_desired_endpoint_slices", "EndpointSlices that there were if endpoints were packed perfectly.", func(t Tally) int { return t.Ideal })
	return m
}

// Count declares a histogram of a number of endpoints or addresses.
func (m *Metrics) Count(name, help string) *prometheus.HistogramVec {
	return m.Histogram(name, help, prometheus.ExponentialBuckets(2, 2, 15))
}

// sum declares a gauge over all owners.
func (m *Metrics) sum(name, help string, of func(Tally) int) {
	m.GaugeFunc(name, help, func() float64 {
		m.mu.Lock()
		defer m.mu.Unlock()
		return float64(of(m.total))
	})
}

// Observe notes what a run plans for the slices of an owner: a tally for each family of addresses.
func (m *Metrics) Observe(owner object.Key, tallies ...Tally) {
	var sum Tally
	for _, t := range tallies {
		m.added.WithLabelValues().Observe(float64(t.Added))
		m.removed.WithLabelValues().Observe(float64(t.Removed))
		sum = sum.plus(t, 1)
	}
	m.replace(owner, sum)
}

// Forget leaves an owner out of the gauges: it is gone, or its slices are not written any more.
func (m *Metrics) Forget(owner object.Key) { m.replace(owner, Tally{}) }

func (m *Metrics) replace(owner object.Key, sum Tally) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total = m.total.plus(m.of[owner], -1).plus(sum, 1)
	if sum == (Tally{}) {
		delete(m.of, owner)
		return
	}
	m.of[owner] = sum
}

// plus returns the sum of what the gauges show, with another tally so many times.
func (t Tally) plus(other Tally, times int) Tally {
	return Tally{
		Endpoints: t.Endpoints + times*other.Endpoints,
		Slices:    t.Slices + times*other.Slices,
		Ideal:     t.Ideal + times*other.Ideal,
	}
}

// wrote counts a write.
func (m *Metrics) wrote(operation string) { m.changes.WithLabelValues(operation).Inc() }
