// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/controllers"
)

// kube-controller-manager observes nanoseconds times 1e9 in one of the two controllers.
func TestTheLatencyOfADeletionIsInSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &controllers.Metrics{}
		deletions := DeletionsOf(m, "test")
		due := time.Now()
		time.Sleep(90 * time.Second)
		deletions.Add(due)
		registry := prometheus.NewRegistry()
		registry.MustRegister(m)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() != "test_pod_deletion_duration_seconds" {
				continue
			}
			if h := f.GetMetric()[0].GetHistogram(); h.GetSampleCount() != 1 || h.GetSampleSum() != 90 {
				t.Errorf("%d deletions took %v s, want one of 90 s", h.GetSampleCount(), h.GetSampleSum())
			}
			return
		}
		t.Error("there is no histogram")
	})
}
