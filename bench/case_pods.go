// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podsCase is the memory of a manager with all controllers and many Pods, which
// several of these look at and nothing has to be done about.
var podsCase = scaleCase{
	what:        "memory of a manager with all controllers beside Pods without owners",
	size:        20_000,
	controllers: allControllers,
	signs:       true,
	measure:     measurePods,
	lines: func(int) []caseLine {
		return []caseLine{
			{name: "all-controllers-idle-memory", unit: "MB", reading: "idle", aim: aim{most: 1. / 3}},
			{name: "all-controllers-memory-with-pods", unit: "MB", reading: "full", aim: aim{most: 1. / 3}},
			{name: "all-controllers-memory-per-pod", unit: "KB", reading: "each"},
			{name: "all-controllers-cpu-per-1000-pods", unit: "s", reading: "cpu", aim: aim{most: 0.5}},
		}
	},
}

// allControllers are those that Setpoint has. kube-controller-manager runs the same.
var allControllers = []string{
	"certificatesigningrequest-approving-controller",
	"certificatesigningrequest-cleaner-controller",
	"certificatesigningrequest-signing-controller",
	"clusterrole-aggregation-controller",
	"cronjob-controller",
	"daemonset-controller",
	"deployment-controller",
	"disruption-controller",
	"endpoints-controller",
	"endpointslice-controller",
	"endpointslice-mirroring-controller",
	"garbage-collector-controller",
	"horizontal-pod-autoscaler-controller",
	"job-controller",
	"legacy-serviceaccount-token-cleaner-controller",
	"namespace-controller",
	"node-lifecycle-controller",
	"persistentvolume-protection-controller",
	"persistentvolumeclaim-protection-controller",
	"pod-garbage-collector-controller",
	"replicaset-controller",
	"replicationcontroller-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"statefulset-controller",
	"taint-eviction-controller",
	"ttl-after-finished-controller",
	"ttl-controller",
}

func measurePods(ctx context.Context, s *scene) (readings, error) {
	if err := s.manager.idle(ctx); err != nil {
		return nil, err
	}
	idle, err := s.manager.memory()
	if err != nil {
		return nil, err
	}
	l, err := s.work(ctx, "pods", func() error {
		return s.createPods(ctx, s.size, func(i int) *corev1.Pod {
			labels := map[string]string{"app": fmt.Sprint("web-", i%100), "pod-template-hash": "7d9c6b54f8"}
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("web-", i), Labels: labels}, Spec: template(labels).Spec}
		})
	})
	if err != nil {
		return nil, err
	}
	full, err := s.manager.memory()
	pods := float64(s.size)
	return readings{"idle": idle, "full": full, "each": (full - idle) / pods * 1000, "cpu": l.cpu / pods * 1000}, err
}
