// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Syncs are the metrics of the runs of a controller, by the code of the answer: how many there
// were, and how long they took. [Metrics.Syncs] declares them. They are safe for concurrent use.
type Syncs struct {
	runs  *prometheus.CounterVec
	times *prometheus.HistogramVec
}

// Syncs declares the metrics of the runs of a publisher of certificates. Their names begin with the
// subsystem. of is what the controller publishes, for the help texts.
// Source: k8s.io/kubernetes/pkg/controller/certificates/clustertrustbundlepublisher and
// rootcacertpublisher, metrics.go.
func (m *Metrics) Syncs(subsystem, of string) *Syncs {
	const code = "code"
	return &Syncs{
		runs: m.Counter(subsystem+"_sync_total", "Runs of the publisher of "+of+".", code),
		times: m.Histogram(subsystem+"_sync_duration_seconds", "How long a run of the publisher of "+of+" took.",
			prometheus.ExponentialBuckets(0.001, 2, 15), code),
	}
}

// Add counts a run that took some time and ended with an error, or nil. Its code is 200 without an
// error, and 500 for an error that is no answer of the API server.
func (s *Syncs) Add(took time.Duration, err error) {
	code := "200"
	if err != nil {
		code = "500"
		var status apierrors.APIStatus
		if errors.As(err, &status) && status.Status().Code != 0 {
			code = strconv.Itoa(int(status.Status().Code))
		}
	}
	s.runs.WithLabelValues(code).Inc()
	s.times.WithLabelValues(code).Observe(took.Seconds())
}
