// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"fmt"
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
		services := server.Serve(serviceResource)
		pods := server.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
		nodes := server.Serve(object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"})
		slices := server.Serve(object.Resource{Group: "discovery.k8s.io", Version: "v1", Plural: "endpointslices", Kind: "EndpointSlice", Namespaced: true})
		selector := map[string]string{"app": "web"}
		if err := nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}); err != nil {
			t.Fatal(err)
		}
		if err := services.Add(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"},
			Spec:       corev1.ServiceSpec{Selector: selector, ClusterIP: "10.0.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}},
		}); err != nil {
			t.Fatal(err)
		}
		managertest.Run(t, server.Config(), managertest.Making(New, Options{Workers: 5, MaxEndpointsPerSlice: 100, BatchPeriod: 10 * time.Second}))
		time.Sleep(time.Minute) // the Service itself, and the slice that was made for it
		synctest.Wait()
		slices.Forget()
		for i := range 5 {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("pod-", i), Labels: selector}, Spec: corev1.PodSpec{NodeName: "node"}}
			pod.Status.PodIPs = []corev1.PodIP{{IP: fmt.Sprint("10.1.0.", i+1)}}
			pod.Status.PodIP = pod.Status.PodIPs[0].IP
			if err := pods.Add(pod); err != nil {
				t.Fatal(err)
			}
			time.Sleep(1900 * time.Millisecond)
		}
		if got := slices.Calls(); len(got) > 0 {
			t.Errorf("9.5 s after the first change the server was asked to %q", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := slices.Calls(); len(got) != 1 {
			t.Errorf("10.5 s after the first change the server was asked to %q, want one write", got)
		}
	})
}
