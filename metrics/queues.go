// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/workqueue"
)

// Queues returns a collector of the statistics of work queues. It calls stats at each scrape;
// the names of the queues must differ. Metrics and labels have the names of those of Kubernetes
// components, so that dashboards for them fit.
// Source: k8s.io/component-base/metrics/prometheus/workqueue.
func Queues(stats func() []workqueue.Stats) prometheus.Collector { return queues(stats) }

type queues func() []workqueue.Stats

func describeQueue(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("workqueue_"+name, help, append([]string{"name"}, more...), nil)
}

var (
	queueDepth      = describeQueue("depth", "Keys that wait to be handed out, without those that wait for a time.")
	queueAdds       = describeQueue("adds_total", "Runs that were requested; adds that found their key waiting count as one.")
	queueLatency    = describeQueue("queue_duration_seconds", "How long keys waited for a worker.")
	queueWork       = describeQueue("work_duration_seconds", "How long keys were worked on.")
	queueUnfinished = describeQueue("unfinished_work_seconds", "How long all keys that are worked on have been.")
	queueLongest    = describeQueue("longest_running_processor_seconds", "How long the key has been worked on that has been the longest.")
	queueRetries    = describeQueue("retries_total", "Keys that were added again after a failure.")
	// Not a metric of Kubernetes.
	queueKeys = describeQueue("keys", "Keys by state: a key that is worked on and wanted again counts twice.", "state")

	allOfQueues = []*prometheus.Desc{
		queueDepth, queueAdds, queueLatency, queueWork, queueUnfinished, queueLongest, queueRetries, queueKeys,
	}
)

// Describe makes it a prometheus.Collector.
func (queues) Describe(out chan<- *prometheus.Desc) {
	for _, d := range allOfQueues {
		out <- d
	}
}

// Collect makes it a prometheus.Collector.
func (q queues) Collect(out chan<- prometheus.Metric) {
	for _, s := range q() {
		gauge := func(d *prometheus.Desc, value float64, more ...string) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{s.Name}, more...)...)
		}
		counter := func(d *prometheus.Desc, value uint64) {
			out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), s.Name)
		}
		gauge(queueDepth, float64(s.Ready+s.Pending))
		counter(queueAdds, s.Adds)
		out <- histogram(queueLatency, s.Latency, s.Name)
		out <- histogram(queueWork, s.Work, s.Name)
		gauge(queueUnfinished, s.Unfinished.Seconds())
		gauge(queueLongest, s.LongestRunning.Seconds())
		counter(queueRetries, s.Retries)
		for state, n := range map[string]int{
			"ready": s.Ready, "delayed": s.Delayed, "processing": s.Processing, "pending": s.Pending, "failing": s.Failing,
		} {
			gauge(queueKeys, float64(n), state)
		}
	}
}

// histogram returns a queue's histogram with the cumulative counts of Prometheus.
func histogram(d *prometheus.Desc, h workqueue.Histogram, labels ...string) prometheus.Metric {
	buckets := map[float64]uint64{}
	below := uint64(0)
	for i := range workqueue.Buckets {
		below += h.Counts[i]
		buckets[math.Round(workqueue.BucketBound(i).Seconds()*1e9)/1e9] = below
	}
	return prometheus.MustNewConstHistogram(d, h.Count(), h.Sum.Seconds(), buckets, labels...)
}
