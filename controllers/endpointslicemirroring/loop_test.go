// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslicemirroring

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// A server lets no Endpoints in with what is no IP address, but keeps those that an
// older one has let in (k8s.io/kubernetes/pkg/apis/core/validation, ValidateEndpoints).
// This one lets all in.
func TestWhatIsNoAddressIsToldAndTheRestIsMirrored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New()
		server.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true})
		endpoints := server.Serve(endpointsResource)
		services := server.Serve(object.Resource{Version: "v1", Plural: "services", Kind: "Service", Namespaced: true})
		mirrors := server.Serve(object.Resource{Group: "discovery.k8s.io", Version: "v1", Plural: "endpointslices", Kind: "EndpointSlice", Namespaced: true})
		all := server
		for name, subset := range map[string]corev1.EndpointSubset{
			"good":  {Addresses: at("192.0.2.1"), Ports: port(1)},
			"bad":   {Addresses: at("192.0.2.1", "host.example"), NotReadyAddresses: at("300.0.2.1", "192.0.2.2"), Ports: port(1)},
			"worse": {Addresses: at("0.example", "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"), Ports: port(1)},
		} {
			where := metav1.ObjectMeta{Namespace: "shop", Name: name}
			if err := endpoints.Add(&corev1.Endpoints{ObjectMeta: where, Subsets: []corev1.EndpointSubset{subset}}); err != nil {
				t.Fatal(err)
			}
			if err := services.Add(&corev1.Service{ObjectMeta: where}); err != nil {
				t.Fatal(err)
			}
		}
		managertest.Run(t, all.Config(), managertest.Making(New, Options{Workers: 5, MaxEndpointsPerSubset: 3}))
		synctest.Wait()

		api, err := client.New(all.Config())
		if err != nil {
			t.Fatal(err)
		}
		written, _, err := client.For[*eventsv1.Event](api).List(t.Context(), client.Selection{Namespace: "shop"})
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, e := range written {
			told = append(told, fmt.Sprintf("%s %s %s by %s: %s", e.Regarding.Name, e.Type, e.Reason, e.ReportingController, e.Note))
		}
		slices.Sort(told)
		want := []string{
			"bad Warning InvalidIPAddress by endpoint-slice-mirroring-controller: Skipped 2 invalid IP addresses when mirroring to EndpointSlices",
			"worse Warning InvalidIPAddress by endpoint-slice-mirroring-controller: Skipped 1 invalid IP addresses when mirroring to EndpointSlices",
			"worse Warning TooManyAddressesToMirror by endpoint-slice-mirroring-controller: A max of 3 addresses can be mirrored to EndpointSlices per Endpoints subset. 2 addresses were skipped",
		}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		if n := len(mirrors.Keys()); n != 3 {
			t.Errorf("%d slices, want one for each of the Endpoints", n)
		}
	})
}
