// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// daemonSetsCase is about DaemonSets on many Nodes, and the rolling update of one of them. The
// Pods are ready as soon as they are created.
var daemonSetsCase = scaleCase{
	what:        fmt.Sprintf("Nodes with %d DaemonSets, of which one is updated a tenth at a time", daemonSets),
	size:        500,
	controllers: []string{"serviceaccount-controller", "daemonset-controller"},
	measure:     measureDaemonSets,
	plain: func(ctx context.Context, s *scene) (readings, error) {
		wall, err := s.createReadyPods(ctx, s.size*daemonSets)
		return readings{"created": wall}, err
	},
	lines: func(int) []caseLine {
		return []caseLine{
			{name: "daemonsets-wall", unit: "s", reading: "created", aim: aim{most: 1 / 1.5}},
			{name: "daemonsets-wall-vs-plain-clients", unit: "s", reading: "created", plain: true},
			{name: "daemonsets-cpu", unit: "s", reading: "created-cpu", aim: aim{most: 0.5}},
			{name: "daemonsets-requests-per-pod", reading: "created-requests"},
			{name: "daemonsets-update-wall", unit: "s", reading: "updated", aim: aim{most: 1 / 1.5}},
			{name: "daemonsets-update-cpu", unit: "s", reading: "updated-cpu", aim: aim{most: 0.5}},
			{name: "daemonsets-update-requests-per-pod", reading: "updated-requests"},
			{name: "daemonsets-memory-after", unit: "MB", reading: "memory", aim: aim{most: 1. / 3}},
		}
	},
}

const daemonSets = 20

func daemonSetName(i int) string { return fmt.Sprint("agent-", i) }

func measureDaemonSets(ctx context.Context, s *scene) (readings, error) {
	if err := s.createNodes(ctx); err != nil {
		return nil, err
	}
	k, err := s.startKubelet(ctx, readyPod)
	if err != nil {
		return nil, err
	}
	defer k.end()
	created, err := s.work(ctx, "created", func() error {
		err := s.each(ctx, daemonSets, func(ctx context.Context, i int) error { return s.createDaemonSet(ctx, daemonSetName(i)) })
		if err != nil {
			return err
		}
		return s.awaitDaemonSets(ctx, k)
	})
	if err != nil {
		return nil, err
	}
	updated, err := s.work(ctx, "updated", func() error {
		_, err := s.plain.AppsV1().DaemonSets("default").Patch(ctx, daemonSetName(0), types.StrategicMergePatchType,
			[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"nginx:2"}]}}}}`), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		return s.awaitDaemonSets(ctx, k)
	})
	if err != nil {
		return nil, err
	}
	memory, err := s.manager.memory()
	if err != nil {
		return nil, err
	}
	return readings{
		"created": created.wall, "created-cpu": created.cpu, "created-requests": created.requests / float64(s.size*daemonSets),
		"updated": updated.wall, "updated-cpu": updated.cpu, "updated-requests": updated.requests / float64(s.size),
		"memory": memory,
	}, k.stop()
}

// createNodes makes Nodes without machines, and takes away the taint that each new Node has.
func (s *scene) createNodes(ctx context.Context) error {
	nodes := s.plain.CoreV1().Nodes()
	return s.each(ctx, s.size, func(ctx context.Context, i int) error {
		name := fmt.Sprint("node-", i)
		if _, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			return err
		}
		_, err := nodes.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
		return err
	})
}

func (s *scene) createDaemonSet(ctx context.Context, name string) error {
	labels, tenth := map[string]string{"app": name}, intstr.FromString("10%")
	_, err := s.plain.AppsV1().DaemonSets("default").Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels),
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &tenth}},
		},
	}, metav1.CreateOptions{})
	return err
}

// awaitDaemonSets waits until each DaemonSet has an available Pod of its template on each Node.
func (s *scene) awaitDaemonSets(ctx context.Context, k *kubelet) error {
	return poll(ctx, "Pods of the DaemonSets on all Nodes", func() (bool, error) {
		list, err := s.plain.AppsV1().DaemonSets("default").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		whole := 0
		for i := range list.Items {
			d, want := &list.Items[i], int32(s.size)
			if d.Status.ObservedGeneration == d.Generation && d.Status.NumberAvailable == want && d.Status.UpdatedNumberScheduled == want {
				whole++
			}
		}
		return whole == daemonSets, k.failed()
	})
}
