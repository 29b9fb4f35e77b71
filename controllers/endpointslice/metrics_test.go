// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// measured is a controller in a bubble, with its metrics.
type measured struct {
	t                       *testing.T
	services, pods, written *fakeapi.Resource
	metrics                 prometheus.Collector
}

// measure runs the controller on a server with three Nodes, and slices of at most two endpoints.
func measure(t *testing.T) *measured {
	t.Helper()
	server := fakeapi.New()
	m := &measured{t: t}
	m.services = server.Serve(serviceResource)
	m.pods = server.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
	m.written = server.Serve(object.Resource{Group: "discovery.k8s.io", Version: "v1", Plural: "endpointslices", Kind: "EndpointSlice", Namespaced: true})
	nodes := server.Serve(object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"})
	server.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true})
	for _, name := range []string{"node-0", "node-1", "node-2"} {
		m.put(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	o := Defaults()
	o.MaxEndpointsPerSlice = 2
	managertest.Run(t, server.Config(), managertest.MakingMetrics(New, o, &m.metrics))
	synctest.Wait()
	return m
}

func (m *measured) put(in *fakeapi.Resource, o metav1.Object) {
	m.t.Helper()
	if err := in.Put(o); err != nil {
		m.t.Fatal(err)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
}

func (m *measured) remove(in *fakeapi.Resource, name string) {
	m.t.Helper()
	if !in.Remove(object.Key{Namespace: "shop", Name: name}) {
		m.t.Fatalf("%s is not there", name)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
}

// want fails the test unless some series, without the beginning of their names, have these values.
func (m *measured) want(what string, want map[string]float64) {
	m.t.Helper()
	all, got := managertest.Series(m.t, m.metrics), map[string]float64{}
	for name := range want {
		got[name] = all["endpoint_slice_controller_"+name]
	}
	if !maps.Equal(got, want) {
		m.t.Errorf("%s: the series are %v, want %v", what, got, want)
	}
}

// labelled returns a Pod that the Service of the tests selects.
func labelled(n int) *corev1.Pod {
	pod := webPod(n)
	pod.Labels = map[string]string{"app": "web"}
	return pod
}

func TestEndpointsAndSlicesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := measure(t)
		service := webService()
		m.put(m.services, service)
		m.want("a Service without Pods has one slice", map[string]float64{
			"endpoints_desired": 0, "num_endpoint_slices": 1, "desired_endpoint_slices": 1, `changes{operation="create"}`: 1,
		})
		for i := range 5 {
			m.put(m.pods, labelled(i))
		}
		m.want("five Pods", map[string]float64{
			"endpoints_desired": 5, "num_endpoint_slices": 3, "desired_endpoint_slices": 3, `changes{operation="create"}`: 3,
			`endpointslices_changed_per_sync{topology="Disabled",traffic_distribution=""}`: managertest.Series(t, m.metrics)["endpoint_slice_controller_endpoints_added_per_sync"],
		})
		m.remove(m.pods, "web-0000")
		m.remove(m.pods, "web-0002")
		m.want("three Pods that are left in three slices", map[string]float64{
			"endpoints_desired": 3, "num_endpoint_slices": 3, "desired_endpoint_slices": 2, `changes{operation="delete"}`: 0,
		})
		m.remove(m.services, "web")
		m.want("the Service is gone", map[string]float64{"endpoints_desired": 0, "num_endpoint_slices": 0, "desired_endpoint_slices": 0})
	})
}

func TestBothFamiliesOfAServiceAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := measure(t)
		for i := range 3 {
			m.put(m.pods, labelled(i))
		}
		service := webService()
		service.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
		m.put(m.services, service)
		m.want("three Pods", map[string]float64{"endpoints_desired": 6, "num_endpoint_slices": 4, "desired_endpoint_slices": 4})
		service.Spec.Selector = nil
		m.put(m.services, service)
		m.want("without a selector", map[string]float64{"endpoints_desired": 0, "num_endpoint_slices": 0, "desired_endpoint_slices": 0})
	})
}

func TestServicesAreCountedByTheirTrafficDistribution(t *testing.T) {
	const prefix, topology = "services_count_by_traffic_distribution", "endpointslices_changed_per_sync"
	preferClose := `{traffic_distribution="PreferClose"}`
	synctest.Test(t, func(t *testing.T) {
		m := measure(t)
		service := webService()
		service.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferClose)
		m.put(m.services, service)
		m.want("one prefers near endpoints", map[string]float64{
			prefix + preferClose: 1, topology + `{topology="Disabled",traffic_distribution="PreferClose"}`: 2, // the slice, and what it has started
		})
		service.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto"}
		m.put(m.services, service)
		m.want("the annotation wins", map[string]float64{
			prefix + preferClose: 0, topology + `{topology="Auto",traffic_distribution=""}`: 1,
		})
	})
}

func TestRunsAreCountedByTheirResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := measure(t)
		refusals := []*metav1.Status{fakeapi.Forbidden("endpointslices"), new(apierrors.NewConflict(discoveryv1.Resource("endpointslices"), "web", nil).Status())}
		m.written.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb != "create" || len(refusals) == 0 {
				return nil
			}
			refusal := refusals[0]
			refusals = refusals[1:]
			return refusal
		})
		m.put(m.services, webService())
		got := managertest.Series(t, m.metrics)
		if got[`endpoint_slice_controller_syncs{result="error"}`] != 1 || got[`endpoint_slice_controller_syncs{result="stale"}`] != 1 ||
			got[`endpoint_slice_controller_syncs{result="success"}`] == 0 || got[`endpoint_slice_controller_changes{operation="create"}`] != 1 {
			t.Errorf("after a refusal and a conflict, the series are %v", got)
		}
	})
}

func TestAPlanCountsItsEndpoints(t *testing.T) {
	var s server
	service := webService()
	tallyOf := func(pods ...*corev1.Pod) tally {
		changes, _, all := plan(service, membersOf(service, pods...), s.slices, 2, nil)
		s.take(changes)
		if len(all) != 1 {
			t.Fatalf("%d tallies, want one", len(all))
		}
		return all[0]
	}
	of := func(got tally, added, removed, changed int) {
		t.Helper()
		if got.Added != added || got.Removed != removed || got.changed != changed {
			t.Errorf("added %d, removed %d, in %d slices; want %d, %d, %d", got.Added, got.Removed, got.changed, added, removed, changed)
		}
	}
	of(tallyOf(webPod(0), webPod(1), webPod(2)), 3, 0, 2)
	of(tallyOf(webPod(0), webPod(1), webPod(2)), 0, 0, 0)
	of(tallyOf(unready(webPod(0)), webPod(1), webPod(2)), 0, 0, 1)
	of(tallyOf(webPod(0), webPod(3)), 1, 2, 2)
	of(tallyOf(), 0, 2, 1)
}
