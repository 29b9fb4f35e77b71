// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// collectCase is the garbage collector's: owners are deleted, and their Pods have
// to follow.
var collectCase = scaleCase{
	what:        "Pods that are collected after their owners",
	size:        20_000,
	controllers: []string{"serviceaccount-controller", "garbage-collector-controller"},
	measure:     measureCollect,
	plain:       measurePlainDelete,
	lines: func(int) []caseLine {
		return []caseLine{
			{name: "gc-wall", unit: "s", reading: "wall", aim: aim{most: 1 / 1.5}},
			{name: "gc-deletes-per-second", unit: perSecond, reading: "rate", aim: aim{least: 1.5}},
			{name: "gc-deletes-vs-plain-clients", unit: perSecond, reading: "rate", plain: true},
			{name: "gc-cpu", unit: "s", reading: "cpu", aim: aim{most: 0.5}},
			{name: "gc-memory-before", unit: "MB", reading: "memory", aim: aim{most: 1. / 3}},
		}
	},
}

// podsOfOwner is how many Pods each owner has.
const podsOfOwner = 100

func measureCollect(ctx context.Context, s *scene) (readings, error) {
	owners, err := s.createOwned(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.manager.idle(ctx); err != nil {
		return nil, err
	}
	memory, err := s.manager.memory()
	if err != nil {
		return nil, err
	}
	l, err := s.work(ctx, "collected", func() error {
		err := s.each(ctx, len(owners), func(ctx context.Context, i int) error {
			return s.plain.AppsV1().ReplicaSets("default").Delete(ctx, owners[i],
				metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
		})
		if err != nil {
			return err
		}
		return s.awaitNoPods(ctx)
	})
	return readings{"wall": l.wall, "cpu": l.cpu, "rate": float64(s.size) / l.wall, "memory": memory}, err
}

// measurePlainDelete measures how fast the server deletes Pods that no client watches.
func measurePlainDelete(ctx context.Context, s *scene) (readings, error) {
	if _, err := s.createOwned(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	err := s.each(ctx, s.size, func(ctx context.Context, i int) error {
		return s.plain.CoreV1().Pods("default").Delete(ctx, ownedName(i), metav1.DeleteOptions{})
	})
	return readings{"rate": float64(s.size) / time.Since(began).Seconds()}, err
}

func ownedName(i int) string { return fmt.Sprint("owned-", i) }

// createOwned makes Pods, and ReplicaSets that own them and that no controller
// looks after. It returns the names of these.
func (s *scene) createOwned(ctx context.Context) ([]string, error) {
	owners := make([]string, (s.size+podsOfOwner-1)/podsOfOwner)
	uids := make([]types.UID, len(owners))
	labels := map[string]string{"app": "owned"}
	err := s.each(ctx, len(owners), func(ctx context.Context, i int) error {
		owners[i] = fmt.Sprint("owner-", i)
		o, err := s.plain.AppsV1().ReplicaSets("default").Create(ctx, &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Name: owners[i]},
			Spec:       appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels)},
		}, metav1.CreateOptions{})
		if err == nil {
			uids[i] = o.UID
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	err = s.createPods(ctx, s.size, func(i int) *corev1.Pod {
		owner := i / podsOfOwner
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: ownedName(i), Labels: labels, OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owners[owner], UID: uids[owner],
				Controller: new(true), BlockOwnerDeletion: new(true),
			}}},
			Spec: template(nil).Spec,
		}
	})
	return owners, err
}
