// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslicemirroring

import (
	"maps"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/endpointslices"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestMirroredEndpointsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New()
		server.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true})
		endpoints := server.Serve(endpointsResource)
		services := server.Serve(object.Resource{Version: "v1", Plural: "services", Kind: "Service", Namespaced: true})
		server.Serve(object.Resource{Group: "discovery.k8s.io", Version: "v1", Plural: "endpointslices", Kind: "EndpointSlice", Namespaced: true})
		where := metav1.ObjectMeta{Namespace: "shop", Name: "db"}
		if err := services.Add(&corev1.Service{ObjectMeta: where}); err != nil {
			t.Fatal(err)
		}
		write := func(subsets ...corev1.EndpointSubset) {
			t.Helper()
			if err := endpoints.Put(&corev1.Endpoints{ObjectMeta: where, Subsets: subsets}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		var metrics prometheus.Collector
		managertest.Run(t, server.Config(), managertest.MakingMetrics(New, Options{Workers: 1, MaxEndpointsPerSubset: 4}, &metrics))
		const prefix = "endpoint_slice_mirroring_controller_"
		want := func(what string, want map[string]float64) {
			t.Helper()
			all, got := managertest.Series(t, metrics), map[string]float64{}
			for name := range want {
				got[name] = all[prefix+name]
			}
			if !maps.Equal(got, want) {
				t.Errorf("%s: the series are %v, want %v", what, got, want)
			}
		}
		write(
			corev1.EndpointSubset{Addresses: at("10.0.0.1", "10.0.0.2", "fd00::1", "10.0.0.3"), Ports: port(1)},
			corev1.EndpointSubset{Addresses: at("10.0.0.4"), Ports: port(2)},
		)
		want("two subsets of two families", map[string]float64{
			"endpoints_desired": 5, "num_endpoint_slices": 3, "desired_endpoint_slices": 3, `changes{operation="create"}`: 3,
		})
		write(corev1.EndpointSubset{Addresses: at("10.0.0.1"), NotReadyAddresses: at("10.0.0.2"), Ports: port(1)})
		want("one subset", map[string]float64{
			"endpoints_desired": 2, "num_endpoint_slices": 1, "desired_endpoint_slices": 1,
			`changes{operation="update"}`: 1, `changes{operation="delete"}`: 2,
		})
		all := managertest.Series(t, metrics)
		runs := all[prefix+"endpoints_added_per_sync"]
		if runs < 2 || all[prefix+"endpoints_sync_duration"] < runs {
			t.Errorf("%v runs were counted, and %v were timed", runs, all[prefix+"endpoints_sync_duration"])
		}
		want("each run is counted in each of these", map[string]float64{
			"endpoints_updated_per_sync": runs, "endpoints_removed_per_sync": runs, "addresses_skipped_per_sync": runs,
		})
		services.Remove(object.Key{Namespace: "shop", Name: "db"})
		synctest.Wait()
		want("without a Service", map[string]float64{
			"endpoints_desired": 0, "num_endpoint_slices": 0, "desired_endpoint_slices": 0, `changes{operation="delete"}`: 3,
		})
	})
}

func TestAPlanCountsItsEndpoints(t *testing.T) {
	subset := func(ready, not []corev1.EndpointAddress) corev1.EndpointSubset {
		return corev1.EndpointSubset{Addresses: ready, NotReadyAddresses: not, Ports: port(1)}
	}
	before, _, first := plan(endpointsOf(subset(at("10.0.0.1", "10.0.0.2", "10.0.0.3"), nil)), nil, 4)
	if want := (endpointslices.Tally{Added: 3, Endpoints: 3, Slices: 1, Ideal: 1}); first != want {
		t.Errorf("a new slice is counted as %+v, want %+v", first, want)
	}
	existing := stored(before.Create)
	for _, c := range []struct {
		name   string
		subset corev1.EndpointSubset
		want   endpointslices.Tally
	}{
		{"nothing", subset(at("10.0.0.1", "10.0.0.2", "10.0.0.3"), nil), endpointslices.Tally{Endpoints: 3, Slices: 1, Ideal: 1}},
		{"one of each", subset(at("10.0.0.1", "10.0.0.9"), at("10.0.0.2")), endpointslices.Tally{Added: 1, Updated: 1, Removed: 1, Endpoints: 3, Slices: 1, Ideal: 1}},
		{"another port", corev1.EndpointSubset{Addresses: at("10.0.0.1"), Ports: port(2)}, endpointslices.Tally{Added: 1, Removed: 3, Endpoints: 1, Slices: 1, Ideal: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, got := plan(endpointsOf(c.subset), existing, 4); got != c.want {
				t.Errorf("it is counted as %+v, want %+v", got, c.want)
			}
		})
	}
}
