// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/watch/sink"
)

// These are for each sink. The watch has metrics of its own.
var (
	sentEvents    = prometheus.NewDesc("setpoint_watch_sink_sent_total", "Events that the receiver has taken.", []string{"sink"}, nil)
	refusedEvents = prometheus.NewDesc("setpoint_watch_sink_refused_total", "Events that the receiver has refused for good.", []string{"sink"}, nil)
	droppedEvents = prometheus.NewDesc("setpoint_watch_sink_dropped_total", "Events that were given up for their age.", []string{"sink"}, nil)
	retries       = prometheus.NewDesc("setpoint_watch_sink_retries_total", "Attempts that failed and are made again.", []string{"sink"}, nil)
	waitingEvents = prometheus.NewDesc("setpoint_watch_sink_waiting", "Events that wait to be sent.", []string{"sink"}, nil)
	oldestSeconds = prometheus.NewDesc("setpoint_watch_sink_oldest_seconds", "Age of the oldest event that waits; 0 if none does.", []string{"sink"}, nil)
	troubled      = prometheus.NewDesc("setpoint_watch_sink_troubled", "1 if the last attempt failed, 0 if not.", []string{"sink"}, nil)
)

// Describe makes a Pipeline a prometheus.Collector. It is called before there is a watch.
func (p *Pipeline) Describe(out chan<- *prometheus.Desc) {
	new(Watch).Describe(out)
	for _, d := range []*prometheus.Desc{sentEvents, refusedEvents, droppedEvents, retries, waitingEvents, oldestSeconds, troubled} {
		out <- d
	}
}

// Collect makes a Pipeline a prometheus.Collector.
func (p *Pipeline) Collect(out chan<- prometheus.Metric) {
	r := p.running.Load()
	if r == nil {
		return
	}
	r.watch.Collect(out)
	for _, s := range r.runners {
		collectSink(out, s.Status(), time.Now())
	}
}

func collectSink(out chan<- prometheus.Metric, s sink.Status, now time.Time) {
	send := func(d *prometheus.Desc, t prometheus.ValueType, value float64) {
		out <- prometheus.MustNewConstMetric(d, t, value, s.Name)
	}
	send(sentEvents, prometheus.CounterValue, float64(s.Sent))
	send(refusedEvents, prometheus.CounterValue, float64(s.Refused))
	send(droppedEvents, prometheus.CounterValue, float64(s.Dropped))
	send(retries, prometheus.CounterValue, float64(s.Retried))
	send(waitingEvents, prometheus.GaugeValue, float64(s.Waiting))
	age := 0.0
	if !s.Oldest.IsZero() {
		age = max(now.Sub(s.Oldest).Seconds(), 0)
	}
	send(oldestSeconds, prometheus.GaugeValue, age)
	bad := 0.0
	if s.InTrouble() {
		bad = 1
	}
	send(troubled, prometheus.GaugeValue, bad)
}
