// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/metrics"
	"github.com/setpoint-io/setpoint/workqueue"
)

func TestQueuesAreToldInTheWordsOfKubernetesAndHistogramsAddUp(t *testing.T) {
	s := workqueue.Stats{Name: "q", Ready: 3, Pending: 2, Delayed: 7, Adds: 11, Retries: 5, LongestRunning: 2 * time.Second, Unfinished: 3 * time.Second}
	s.Latency.Counts[0], s.Latency.Counts[2], s.Latency.Counts[workqueue.Buckets] = 4, 5, 1
	s.Latency.Sum = 10 * time.Second
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.Queues(func() []workqueue.Stats { return []workqueue.Stats{s, {Name: "other"}} }))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		m := f.GetMetric()[1] // "other" comes first
		got[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		if f.GetName() != "workqueue_queue_duration_seconds" {
			continue
		}
		h := m.GetHistogram()
		if h.GetSampleCount() != 10 || h.GetSampleSum() != 10 || len(h.GetBucket()) != workqueue.Buckets {
			t.Errorf("the histogram is %v", h)
		}
		for i, want := range []uint64{4, 4, 9, 9} {
			if b := h.GetBucket()[i]; b.GetCumulativeCount() != want || b.GetUpperBound() != workqueue.BucketBound(i).Seconds() {
				t.Errorf("bucket %d is %v", i, b)
			}
		}
	}
	for name, want := range map[string]float64{
		"workqueue_depth": 5, "workqueue_adds_total": 11, "workqueue_retries_total": 5,
		"workqueue_unfinished_work_seconds": 3, "workqueue_longest_running_processor_seconds": 2,
	} {
		if got[name] != want {
			t.Errorf("%s is %g, not %g", name, got[name], want)
		}
	}
}
