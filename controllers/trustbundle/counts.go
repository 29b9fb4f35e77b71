// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package trustbundle

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// counts are the metrics of the runs, by the code of the answer. Names, labels and buckets are
// upstream's.
// Source: k8s.io/kubernetes/pkg/controller/certificates/clustertrustbundlepublisher, metrics.go.
type counts struct {
	runs  *prometheus.CounterVec
	times *prometheus.HistogramVec
}

func newCounts() *counts {
	const subsystem = "clustertrustbundle_publisher"
	labels := []string{"code"}
	return &counts{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Subsystem: subsystem, Name: "sync_total", Help: "Runs of the publisher of ClusterTrustBundles.",
		}, labels),
		times: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Subsystem: subsystem, Name: "sync_duration_seconds", Help: "How long a run of the publisher of ClusterTrustBundles took.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, labels),
	}
}

// add counts a run.
func (c *counts) add(took time.Duration, err error) {
	code := "200"
	if err != nil {
		code = "500"
		var status apierrors.APIStatus
		if errors.As(err, &status) && status.Status().Code != 0 {
			code = strconv.Itoa(int(status.Status().Code))
		}
	}
	c.runs.WithLabelValues(code).Inc()
	c.times.WithLabelValues(code).Observe(took.Seconds())
}

// Describe makes the counts a prometheus.Collector.
func (c *counts) Describe(out chan<- *prometheus.Desc) {
	c.runs.Describe(out)
	c.times.Describe(out)
}

// Collect makes the counts a prometheus.Collector.
func (c *counts) Collect(out chan<- prometheus.Metric) {
	c.runs.Collect(out)
	c.times.Collect(out)
}
