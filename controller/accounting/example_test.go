// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package accounting_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller/accounting"
)

// A quota of a namespace with two Pods, one of which is resized and then ends.
func Example() {
	limits := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10"), corev1.ResourceRequestsCPU: resource.MustParse("4")}
	quota, err := accounting.NewQuota(&corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: limits}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var sum accounting.Sum
	seen := func(pod *corev1.Pod) {
		charge, err := quota.Charge(accounting.Pods, pod, accounting.Around{Now: time.Now()})
		if err != nil {
			fmt.Println(err)
			return
		}
		sum.Set(pod.UID, charge.Used)
		used := sum.Used(quota.Tracks(accounting.Pods, accounting.Around{})...)
		fmt.Println(used.Pods(), "Pods, CPU", used.Name(corev1.ResourceRequestsCPU, resource.DecimalSI))
	}
	seen(pod("web-0", "500m"))
	seen(pod("web-1", "1"))
	seen(pod("web-1", "1500m"))
	ended := pod("web-1", "1500m")
	ended.Status.Phase = corev1.PodSucceeded
	seen(ended)
	// Output:
	// 1 Pods, CPU 500m
	// 2 Pods, CPU 1500m
	// 2 Pods, CPU 2
	// 1 Pods, CPU 500m
}

func pod(name, cpu string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
	p.Spec.Containers = []corev1.Container{{Name: "web", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
	}}}
	return p
}
