// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// statefulSetsCase is about StatefulSets whose Pods are ready as soon as they are created: in
// one half all Pods of a set are created at once, and in the other one after the other.
var statefulSetsCase = scaleCase{
	what:        fmt.Sprintf("Pods of StatefulSets of %d, first of Parallel ones, and then as many of OrderedReady ones", podsOfStatefulSet),
	size:        2_000,
	controllers: []string{"serviceaccount-controller", "statefulset-controller"},
	measure:     measureStatefulSets,
	plain: func(ctx context.Context, s *scene) (readings, error) {
		wall, err := s.createReadyPods(ctx, max(1, s.size/podsOfStatefulSet)*podsOfStatefulSet)
		return readings{"Parallel": wall}, err
	},
	lines: func(int) []caseLine {
		return []caseLine{
			{name: "statefulsets-parallel-wall", unit: "s", reading: "Parallel", aim: aim{most: 1 / 1.5}},
			{name: "statefulsets-parallel-wall-vs-plain-clients", unit: "s", reading: "Parallel", plain: true},
			{name: "statefulsets-parallel-cpu", unit: "s", reading: "Parallel-cpu", aim: aim{most: 0.5}},
			{name: "statefulsets-parallel-requests-per-pod", reading: "Parallel-requests"},
			{name: "statefulsets-ordered-wall", unit: "s", reading: "OrderedReady", aim: aim{most: 1 / 1.5}},
			{name: "statefulsets-ordered-cpu", unit: "s", reading: "OrderedReady-cpu", aim: aim{most: 0.5}},
			{name: "statefulsets-ordered-requests-per-pod", reading: "OrderedReady-requests"},
			{name: "statefulsets-memory-after", unit: "MB", reading: "memory", aim: aim{most: 1. / 3}},
		}
	},
}

const podsOfStatefulSet = 10

func measureStatefulSets(ctx context.Context, s *scene) (readings, error) {
	k, err := s.startKubelet(ctx, readyPod)
	if err != nil {
		return nil, err
	}
	defer k.end()
	found := readings{}
	sets := max(1, s.size/podsOfStatefulSet)
	for i, policy := range []appsv1.PodManagementPolicyType{appsv1.ParallelPodManagement, appsv1.OrderedReadyPodManagement} {
		l, err := s.work(ctx, string(policy), func() error {
			err := s.each(ctx, sets, func(ctx context.Context, set int) error {
				return s.createStatefulSet(ctx, fmt.Sprintf("set-%d-%d", i, set), policy)
			})
			if err != nil {
				return err
			}
			return s.awaitStatefulSets(ctx, k, sets*(i+1))
		})
		if err != nil {
			return nil, err
		}
		found[string(policy)], found[string(policy)+"-cpu"] = l.wall, l.cpu
		found[string(policy)+"-requests"] = l.requests / float64(sets*podsOfStatefulSet)
	}
	if found["memory"], err = s.manager.memory(); err != nil {
		return nil, err
	}
	return found, k.stop()
}

func (s *scene) createStatefulSet(ctx context.Context, name string, policy appsv1.PodManagementPolicyType) error {
	labels := map[string]string{"app": name}
	_, err := s.plain.AppsV1().StatefulSets("default").Create(ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(podsOfStatefulSet)), PodManagementPolicy: policy,
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels),
		},
	}, metav1.CreateOptions{})
	return err
}

// awaitStatefulSets waits until so many StatefulSets have all their Pods, and all are available.
func (s *scene) awaitStatefulSets(ctx context.Context, k *kubelet, want int) error {
	return poll(ctx, fmt.Sprintf("%d StatefulSets with available Pods", want), func() (bool, error) {
		list, err := s.plain.AppsV1().StatefulSets("default").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		whole := 0
		for i := range list.Items {
			if status := &list.Items[i].Status; status.AvailableReplicas == podsOfStatefulSet && status.UpdatedReplicas == podsOfStatefulSet {
				whole++
			}
		}
		return whole == want, k.failed()
	})
}
