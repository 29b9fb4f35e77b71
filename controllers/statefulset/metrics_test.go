// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

func TestMetricsShowHowManyPodsAreAndMayBeUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const labels = `{pod_management_policy="Parallel",statefulset_name="web",statefulset_namespace="shop"}`
		const most, are = "statefulset_controller_statefulset_max_unavailable" + labels, "statefulset_controller_statefulset_unavailable_replicas" + labels
		c := newCluster(t)
		var metrics prometheus.Collector
		managertest.Run(t, c.Config(), managertest.MakingMetrics(New, Defaults(), &metrics))
		want := func(when string, wantMost, wantAre float64) {
			t.Helper()
			got := managertest.Series(t, metrics)
			if got[most] != wantMost || got[are] != wantAre {
				t.Errorf("%s %v Pods may be unavailable, and %v are, want %v and %v", when, got[most], got[are], wantMost, wantAre)
			}
		}
		set := web(4, parallel, maxUnavailable("50%"))
		c.create(set)
		synctest.Wait()
		want("before a Pod is ready", 2, 4)
		c.settle()
		want("at rest", 2, 0)
		c.change(image("web:3"))
		synctest.Wait()
		want("in a rollout", 2, 2)
		c.settle()
		want("after the rollout", 2, 0)
		c.change(func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
		})
		synctest.Wait()
		want("with another strategy", 1, 0)
		c.sets.Remove(object.KeyOf(set))
		synctest.Wait()
		got := managertest.Series(t, metrics)
		maps.DeleteFunc(got, func(name string, _ float64) bool { return strings.HasPrefix(name, "statefulset_controller_stale_") })
		if len(got) != 0 {
			t.Errorf("without the StatefulSet there are the series %v", got)
		}
	})
}
