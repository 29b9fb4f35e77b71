// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podrank_test

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/controller/podrank"
)

func ExampleNew() {
	pod := func(name, node string, labels map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: corev1.PodSpec{NodeName: node}}
	}
	pods := []*corev1.Pod{
		pod("busy", "node-1", nil),
		pod("waiting", "", nil), // has no node yet
		pod("idle", "node-1", map[string]string{"idle": "yes"}),
	}
	idleFirst := func(a, b *corev1.Pod) int { return strings.Compare(b.Labels["idle"], a.Labels["idle"]) }

	for _, pod := range owned.Surplus(pods, 2, idleFirst, podrank.New(podrank.Options{Now: time.Now()})) {
		fmt.Println(pod.Name)
	}
	// Output:
	// idle
	// waiting
}
