// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestMetricsCountTheNodesOfZonesAndTheirEvictions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New()
		nodes := server.Serve(nodeResource)
		server.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
		server.Serve(object.Resource{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true})
		server.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true})
		for name, ready := range map[string]corev1.ConditionStatus{"a": corev1.ConditionTrue, "b": corev1.ConditionTrue, "c": corev1.ConditionTrue, "d": corev1.ConditionFalse} {
			node := nodeWith(name, ready)
			node.Labels = map[string]string{corev1.LabelTopologyRegion: "eu", corev1.LabelTopologyZone: "1"}
			if err := nodes.Add(node); err != nil {
				t.Fatal(err)
			}
		}
		var metrics prometheus.Collector
		managertest.Run(t, server.Config(), managertest.MakingMetrics(New, Defaults(), &metrics))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		want := func(when string, all map[string]float64) {
			t.Helper()
			got := managertest.Series(t, metrics)
			for name, value := range all {
				if has, ok := got[name+`{zone="eu:1"}`]; !ok || has != value {
					t.Errorf("%s %s is %v, want %v", when, name, has, value)
				}
			}
			for _, name := range []string{"node_collector_update_all_nodes_health_duration_seconds", "node_collector_update_node_health_duration_seconds"} {
				if got[name] == 0 {
					t.Errorf("%s %s has no observation", when, name)
				}
			}
			if t.Failed() {
				t.Log(got)
			}
		}
		want("with one node down", map[string]float64{
			"node_collector_evictions_total": 1, "node_collector_zone_size": 4, "node_collector_zone_health": 75, "node_collector_unhealthy_nodes_in_zone": 1,
		})
		// The other taint replaces the one that the node has: its Pods go already.
		if err := fakeapi.Change(nodes, object.Key{Name: "d"}, func(n *corev1.Node) { setCondition(n, corev1.NodeReady, corev1.ConditionUnknown) }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		want("with another taint", map[string]float64{"node_collector_evictions_total": 1})
		for _, key := range []string{"a", "b", "c", "d"} {
			nodes.Remove(object.Key{Name: key})
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		want("without nodes", map[string]float64{
			"node_collector_evictions_total": 1, "node_collector_zone_size": 0, "node_collector_zone_health": 100, "node_collector_unhealthy_nodes_in_zone": 0,
		})
	})
}
