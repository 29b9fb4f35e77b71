// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslicemirroring

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestChangesOfEndpointsWaitForTheBatchPeriodAndAreMirroredTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New()
		server.Serve(endpointsResource)
		services := server.Serve(object.Resource{Version: "v1", Plural: "services", Kind: "Service", Namespaced: true})
		mirrors := server.Serve(object.Resource{Group: "discovery.k8s.io", Version: "v1", Plural: "endpointslices", Kind: "EndpointSlice", Namespaced: true})
		where := metav1.ObjectMeta{Namespace: "shop", Name: "db"}
		if err := services.Add(&corev1.Service{ObjectMeta: where}); err != nil {
			t.Fatal(err)
		}
		config := server.Config()
		managertest.Run(t, config, managertest.Making(New, Options{Workers: 5, MaxEndpointsPerSubset: 1000, BatchPeriod: 10 * time.Second}))
		time.Sleep(time.Minute)
		api, err := client.New(config)
		if err != nil {
			t.Fatal(err)
		}
		writer := client.For[*corev1.Endpoints](api)
		now, err := writer.Create(t.Context(), &corev1.Endpoints{ObjectMeta: where, Subsets: []corev1.EndpointSubset{{Addresses: at("192.0.2.1"), Ports: port(1)}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, ip := range []string{"192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"} {
			time.Sleep(2 * time.Second)
			now.Subsets[0].Addresses = append(now.Subsets[0].Addresses, at(ip)...)
			if now, err = writer.Update(t.Context(), now); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(1900 * time.Millisecond)
		if got := mirrors.Calls(); len(got) > 0 {
			t.Errorf("9.9 s after the first change the server was asked to %q", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := mirrors.Calls(); len(got) != 1 {
			t.Errorf("10.9 s after the first change the server was asked to %q, want one write", got)
		}
	})
}
