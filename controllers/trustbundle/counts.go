// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package trustbundle

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/controllers"
)

// counts are the metrics of the runs, by the code of the answer. Names, labels and buckets are
// upstream's.
// Source: k8s.io/kubernetes/pkg/controller/certificates/clustertrustbundlepublisher, metrics.go.
type counts struct {
	controllers.Metrics

	runs  *prometheus.CounterVec
	times *prometheus.HistogramVec
}

func newCounts() *counts {
	const code = "code"
	c := &counts{}
	c.runs = c.Counter("clustertrustbundle_publisher_sync_total", "Runs of the publisher of ClusterTrustBundles.", code)
	c.times = c.Histogram("clustertrustbundle_publisher_sync_duration_seconds", "How long a run of the publisher of ClusterTrustBundles took.",
		prometheus.ExponentialBuckets(0.001, 2, 15), code)
	return c
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
