// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// A DeviceClass decides whether ResourceClaims count for the requests of an extended resource. A
// claim that stands for a Pod does not count beside the Pod.
func TestClaimsCountForTheExtendedResourcesOfDeviceClasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.api.Serve(object.Resource{Group: "resource.k8s.io", Version: "v1", Plural: "resourceclaims", Kind: "ResourceClaim", Namespaced: true})
		c.api.Serve(object.Resource{Group: "resource.k8s.io", Version: "v1", Plural: "deviceclasses", Kind: "DeviceClass"})
		claim := func(name string, owner *corev1.Pod, devices int64) {
			t.Helper()
			o := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
			if owner != nil {
				o.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
				o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: owner.Name, UID: owner.UID, Controller: new(true)}}
			}
			o.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "a", Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: devices,
			}}}
			if _, err := client.For[*resourcev1.ResourceClaim](c.client).Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		c.start()
		c.quota("small", "requests.example.com/gpu=10")
		claim("free", nil, 3)
		pass(10 * time.Second)
		c.want("without a class", "small", "requests.example.com/gpu=0")

		class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: new("example.com/gpu")}}
		classes := client.For[*resourcev1.DeviceClass](c.client)
		if _, err := classes.Create(t.Context(), class); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		c.want("with a class", "small", "requests.example.com/gpu=3")

		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		pod.Spec.Containers = []corev1.Container{{Name: "web", Resources: corev1.ResourceRequirements{Requests: hard("example.com/gpu=2"), Limits: hard("example.com/gpu=2")}}}
		pod, err := client.For[*corev1.Pod](c.client).Create(t.Context(), pod)
		if err != nil {
			t.Fatal(err)
		}
		claim("of-web", pod, 2)
		pass(10 * time.Second)
		c.want("with a Pod and its claim", "small", "requests.example.com/gpu=5")
		c.delete("web")
		pass(10 * time.Second)
		c.want("with the claim of a Pod that is gone", "small", "requests.example.com/gpu=5")

		if err := classes.Delete(t.Context(), object.Key{Name: "gpu"}); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		c.want("when the class is gone", "small", "requests.example.com/gpu=0")
	})
}
