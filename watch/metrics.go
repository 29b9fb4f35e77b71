// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"github.com/prometheus/client_golang/prometheus"
)

// These count all followers together. The informers have metrics by kind.
var (
	seenEvents   = prometheus.NewDesc("setpoint_watch_changes_total", "Changes that were seen, also those that were not published.", nil, nil)
	hiddenEvents = prometheus.NewDesc("setpoint_watch_changes_hidden_total", "Changes that were left out, as noise or by a condition.", nil, nil)
	toldEvents   = prometheus.NewDesc("setpoint_watch_events_total", "Events that were published: put into the queues of sinks, or printed.", nil, nil)
	failedEvents = prometheus.NewDesc("setpoint_watch_failures_total", "Objects that could not be decoded, and conditions that could not be decided.", nil, nil)
	lagSeconds   = prometheus.NewDesc("setpoint_watch_last_lag_seconds", "How long the last event took from when its change was seen to when it was published, except merged events.", nil, nil)
	following    = prometheus.NewDesc("setpoint_watch_followed", "Kinds that are followed, one for each namespace if some are named.", []string{"state"}, nil)
)

// Describe makes a Watch a prometheus.Collector.
func (w *Watch) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{seenEvents, hiddenEvents, toldEvents, failedEvents, lagSeconds, following} {
		out <- d
	}
}

// Collect makes a Watch a prometheus.Collector.
func (w *Watch) Collect(out chan<- prometheus.Metric) {
	s := w.Status()
	count := func(d *prometheus.Desc, n uint64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
	count(seenEvents, s.Seen)
	count(hiddenEvents, s.Hidden)
	count(toldEvents, s.Told)
	count(failedEvents, s.Failed)
	out <- prometheus.MustNewConstMetric(lagSeconds, prometheus.GaugeValue, s.Lag.Seconds())
	out <- prometheus.MustNewConstMetric(following, prometheus.GaugeValue, float64(s.Followed-len(s.Troubles)), "well")
	out <- prometheus.MustNewConstMetric(following, prometheus.GaugeValue, float64(len(s.Troubles)), "troubled")
}
