// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestChangesOfPodsWaitForTheBatchPeriodAndAreWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New()
		services := server.Serve(object.Resource{Version: "v1", Plural: "services", Kind: "Service", Namespaced: true})
		pods := server.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
		endpoints := server.Serve(endpointsResource)
		selector := map[string]string{"app": "web"}
		if err := services.Add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: corev1.ServiceSpec{Selector: selector, ClusterIP: corev1.ClusterIPNone}}); err != nil {
			t.Fatal(err)
		}
		managertest.Run(t, server.Config(), managertest.Making(New, Options{Workers: 5, BatchPeriod: 10 * time.Second}))
		synctest.Wait()
		if got, want := endpoints.Calls(), []string{"create /api/v1/namespaces/ns/endpoints"}; !slices.Equal(got, want) {
			t.Fatalf("for the Service itself the server was asked to %q, want %q at once", got, want)
		}
		endpoints.Forget()
		for i := range 5 {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("pod-", i), Labels: selector}}
			pod.Status.PodIPs = []corev1.PodIP{{IP: fmt.Sprint("10.1.0.", i+1)}}
			pod.Status.PodIP = pod.Status.PodIPs[0].IP
			if err := pods.Add(pod); err != nil {
				t.Fatal(err)
			}
			time.Sleep(1900 * time.Millisecond)
		}
		if got := endpoints.Calls(); len(got) > 0 {
			t.Errorf("9.5 s after the first change the server was asked to %q", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got, want := endpoints.Calls(), []string{"update /api/v1/namespaces/ns/endpoints/web"}; !slices.Equal(got, want) {
			t.Errorf("10.5 s after the first change the server was asked to %q, want %q", got, want)
		}
	})
}
