// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// A user writes a Service without a selector and its Endpoints, in one order or the other. The cache may show the Service after them.
func TestEndpointsOfAUserStayWhereTheirServiceComesAfterThem(t *testing.T) {
	for _, order := range []string{"the Service is created later", "the cache shows the Service later"} {
		t.Run(order, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := fakeapi.New()
				services := server.Serve(object.Resource{Version: "v1", Plural: "services", Kind: "Service", Namespaced: true})
				server.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
				endpoints := server.Serve(endpointsResource)
				managertest.Run(t, server.Config(), theController)
				synctest.Wait()
				meta := metav1.ObjectMeta{Namespace: "ns", Name: "db"}
				service := func() {
					if err := services.Add(&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 5432}}}}); err != nil {
						t.Fatal(err)
					}
				}
				if order != "the Service is created later" {
					services.LagWatches(func() time.Duration { return 50 * time.Millisecond })
					service()
				}
				if err := endpoints.Add(&corev1.Endpoints{ObjectMeta: meta, Subsets: []corev1.EndpointSubset{{
					Addresses: []corev1.EndpointAddress{{IP: "192.0.2.1"}}, Ports: []corev1.EndpointPort{{Port: 5432}},
				}}}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if order == "the Service is created later" {
					service()
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := endpoints.Keys(); len(got) != 1 {
					t.Errorf("the Endpoints are %q; the server was asked to %q", got, endpoints.Calls())
				}
			})
		})
	}
}

// What this process sees late may be left from a process that ran before.
func TestEndpointsOfThisControllerThatAppearWithoutTheirServiceAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New()
		server.Serve(object.Resource{Version: "v1", Plural: "services", Kind: "Service", Namespaced: true})
		server.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
		endpoints := server.Serve(endpointsResource)
		managertest.Run(t, server.Config(), theController)
		synctest.Wait()
		meta := metav1.ObjectMeta{Namespace: "ns", Name: "web", Labels: map[string]string{labelManagedBy: source}}
		if err := endpoints.Add(&corev1.Endpoints{ObjectMeta: meta}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := endpoints.Keys(); len(got) > 0 {
			t.Errorf("the Endpoints are %q", got)
		}
	})
}
