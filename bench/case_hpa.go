// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// hpaCase is about autoscalers whose Pods use what they should, and then twice as much. Nothing
// creates the Pods that they ask for, so each asks once.
var hpaCase = scaleCase{
	what:        fmt.Sprintf("HorizontalPodAutoscalers of %d Pods each, at rest and when all Pods use twice the CPU", scaledPods),
	size:        500,
	controllers: []string{"serviceaccount-controller", "horizontal-pod-autoscaler-controller"},
	nodes:       scalingNodes,
	measure:     measureAutoscalers,
	lines: func(int) []caseLine {
		return []caseLine{
			{name: "hpa-cpu-per-minute-at-rest", unit: "s", reading: "rest", aim: aim{most: 0.5}},
			{name: "hpa-requests-per-autoscaler-and-minute-at-rest", reading: "rest-requests"},
			{name: "hpa-seconds-until-all-are-scaled", unit: "s", reading: "wall", aim: aim{most: 1.05}}, // both wait up to 15 s
			{name: "hpa-cpu-of-scaling", unit: "s", reading: "cpu", aim: aim{most: 0.5}},
			{name: "hpa-requests-per-autoscaler-of-scaling", reading: "requests"},
			{name: "hpa-memory", unit: "MB", reading: "memory", aim: aim{most: 1. / 3}},
		}
	},
}

const (
	scalingNodes = 10
	// scaledPods is how many Pods each autoscaler finds.
	scaledPods = 2
	// restTime is how long autoscalers are measured at rest. Each looks at its metrics every 15 s.
	restTime = time.Minute

	usageAnnotation = "sim.setpoint.io/usage-cpu" // see docs/simulated-nodes.md
)

func scaledName(i int) string { return fmt.Sprint("web-", i) }

func measureAutoscalers(ctx context.Context, s *scene) (readings, error) {
	if err := s.createScaled(ctx); err != nil {
		return nil, err
	}
	err := s.awaitAutoscalers(ctx, "that have read their metrics", func(h *autoscalingv2.HorizontalPodAutoscaler) bool {
		return len(h.Status.CurrentMetrics) == 1 && h.Status.DesiredReplicas == scaledPods
	})
	if err != nil {
		return nil, err
	}
	end, err := s.begin(ctx, "rest")
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, restTime); err != nil {
		return nil, err
	}
	rest, err := end()
	if err != nil {
		return nil, err
	}
	perMinute := float64(time.Minute / restTime)
	found := readings{"rest": rest.cpu * perMinute, "rest-requests": rest.requests * perMinute / float64(s.size)}
	if found["memory"], err = s.manager.memory(); err != nil {
		return nil, err
	}
	if end, err = s.begin(ctx, "scaling"); err != nil {
		return nil, err
	}
	if err := s.doubleUsage(ctx); err != nil {
		return nil, err
	}
	err = s.awaitAutoscalers(ctx, "that have scaled", func(h *autoscalingv2.HorizontalPodAutoscaler) bool {
		return h.Status.DesiredReplicas == 2*scaledPods
	})
	if err != nil {
		return nil, err
	}
	scaling, err := end()
	found["wall"], found["cpu"], found["requests"] = scaling.wall, scaling.cpu, scaling.requests/float64(s.size)
	return found, err
}

// createScaled creates Deployments that no controller works on, their Pods, which run on simulated
// nodes and use half of what they request, and autoscalers to which that is right.
func (s *scene) createScaled(ctx context.Context) error {
	labels := func(i int) map[string]string { return map[string]string{"app": scaledName(i)} }
	err := s.createPods(ctx, scaledPods*s.size, func(i int) *corev1.Pod {
		p := template(nil).Spec
		p.NodeName = fmt.Sprint("node-", i%scalingNodes)
		p.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m")}
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint("pod-", i), Labels: labels(i / scaledPods), Annotations: map[string]string{usageAnnotation: "10m"},
			},
			Spec: p,
		}
	})
	if err != nil {
		return err
	}
	return s.each(ctx, s.size, func(ctx context.Context, i int) error {
		_, err := s.plain.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: scaledName(i)},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(scaledPods)), Selector: &metav1.LabelSelector{MatchLabels: labels(i)}, Template: template(labels(i)),
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		_, err = s.plain.AutoscalingV2().HorizontalPodAutoscalers("default").Create(ctx, &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Name: scaledName(i)},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: scaledName(i)},
				MaxReplicas:    10 * scaledPods,
				Metrics: []autoscalingv2.MetricSpec{{
					Type: autoscalingv2.ResourceMetricSourceType,
					Resource: &autoscalingv2.ResourceMetricSource{
						Name:   corev1.ResourceCPU,
						Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(50))},
					},
				}},
			},
		}, metav1.CreateOptions{})
		return err
	})
}

// doubleUsage has each Pod use all that it requests.
func (s *scene) doubleUsage(ctx context.Context) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"20m"}}}`, usageAnnotation)
	return s.each(ctx, scaledPods*s.size, func(ctx context.Context, i int) error {
		_, err := s.plain.CoreV1().Pods("default").Patch(ctx, fmt.Sprint("pod-", i), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
}

// awaitAutoscalers waits until all autoscalers are as they should be. It asks no more than once
// in half a second: a list of all is much.
func (s *scene) awaitAutoscalers(ctx context.Context, what string, so func(*autoscalingv2.HorizontalPodAutoscaler) bool) error {
	return poll(ctx, fmt.Sprintf("%d autoscalers %s", s.size, what), func() (bool, error) {
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return false, err
		}
		list, err := s.plain.AutoscalingV2().HorizontalPodAutoscalers("default").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		n := 0
		for i := range list.Items {
			if so(&list.Items[i]) {
				n++
			}
		}
		return n == s.size, s.aliveManager()
	})
}
