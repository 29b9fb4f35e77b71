// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

func TestMetricsCountWhatRunsAndMetricsCameTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const prefix = "horizontal_pod_autoscaler_controller_"
		c := newCluster(t)
		c.deploy("web", 2)
		c.uses("web", 2, "100m")
		c.autoscaler("web", 1, 10)
		c.autoscaler("absent", 1, 10)
		c.autoscaler("wrong", 1, 10, func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Spec.ScaleTargetRef.APIVersion = "a/b/c" })
		var metrics prometheus.Collector
		managertest.Run(t, c.config(), managertest.MakingMetrics(New, c.options, &metrics))
		pass(time.Second)
		c.want("at twice the target", "web", 4)
		want := func(when string, all map[string]float64) {
			t.Helper()
			got := managertest.Series(t, metrics)
			for series, value := range all {
				if has, ok := got[prefix+series]; !ok || has != value {
					t.Errorf("%s %s is %v, want %v", when, series, has, value)
				}
			}
			if t.Failed() {
				t.Log(got)
			}
		}
		want("after the first runs", map[string]float64{
			`reconciliations_total{action="scale_up",error="none"}`:                                      1,
			`reconciliation_duration_seconds{action="scale_up",error="none"}`:                            1,
			`reconciliations_total{action="none",error="internal"}`:                                      1,
			`reconciliations_total{action="none",error="spec"}`:                                          1,
			`metric_computation_total{action="scale_up",error="none",metric_type="Resource"}`:            1,
			`metric_computation_duration_seconds{action="scale_up",error="none",metric_type="Resource"}`: 1,
			`desired_replicas{hpa_name="web",namespace="shop"}`:                                          4,
			`num_horizontal_pod_autoscalers`:                                                             3,
		})
		c.edit("web", func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
			hpa.Spec.MaxReplicas = 3
			hpa.Spec.Metrics = []autoscalingv2.MetricSpec{queue("1")}
		})
		synctest.Wait()
		pass(15 * time.Second)
		want("with a bound below the size, and a metric that is not served", map[string]float64{
			`reconciliations_total{action="scale_down",error="none"}`:                         1,
			`metric_computation_total{action="none",error="internal",metric_type="External"}`: 1,
			`desired_replicas{hpa_name="web",namespace="shop"}`:                               3,
		})
		for _, name := range []string{"web", "absent", "wrong"} {
			c.autoscalers.Remove(object.Key{Namespace: "shop", Name: name})
		}
		pass(time.Second)
		want("without HorizontalPodAutoscalers", map[string]float64{`num_horizontal_pod_autoscalers`: 0})
		if got, there := managertest.Series(t, metrics)[prefix+`desired_replicas{hpa_name="web",namespace="shop"}`]; there {
			t.Errorf("a HorizontalPodAutoscaler that is gone should have %v replicas", got)
		}
	})
}
