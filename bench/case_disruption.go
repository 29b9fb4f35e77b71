// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// disruptionCase is about budgets that follow the readiness of their Pods.
var disruptionCase = scaleCase{
	what:        fmt.Sprintf("Pods that flip, %d to a PodDisruptionBudget", podsOfBudget),
	size:        20_000,
	controllers: []string{"serviceaccount-controller", "disruption-controller"},
	measure:     measureDisruption,
	plain:       measurePlainFlips,
	lines: func(int) []caseLine {
		return []caseLine{
			{name: "disruption-wall", unit: "s", reading: "wall", aim: aim{most: 1 / 1.5}},
			{name: "disruption-wall-vs-plain-clients", unit: "s", reading: "wall", plain: true},
			{name: "disruption-seconds-behind-the-last-flip", unit: "s", reading: "lag"}, // as exact as the poll
			{name: "disruption-cpu", unit: "s", reading: "cpu", aim: aim{most: 0.5}},
			{name: "disruption-requests-per-budget", reading: "requests"},
			{name: "disruption-memory", unit: "MB", reading: "memory", aim: aim{most: 1. / 3}},
		}
	},
}

// podsOfBudget is how many Pods each budget selects. All of them become unready, and every
// second one ready again.
const podsOfBudget = 40

func measureDisruption(ctx context.Context, s *scene) (readings, error) {
	if err := s.createGuarded(ctx); err != nil {
		return nil, err
	}
	if err := s.awaitHealthy(ctx, podsOfBudget); err != nil {
		return nil, err
	}
	if err := s.manager.idle(ctx); err != nil {
		return nil, err
	}
	memory, err := s.manager.memory()
	if err != nil {
		return nil, err
	}
	var lag time.Duration
	l, err := s.work(ctx, "flips", func() error {
		if err := s.flip(ctx); err != nil {
			return err
		}
		last := time.Now()
		err := s.awaitHealthy(ctx, podsOfBudget/2)
		lag = time.Since(last)
		return err
	})
	return readings{"wall": l.wall, "lag": lag.Seconds(), "cpu": l.cpu, "requests": l.requests / float64(s.budgets()), "memory": memory}, err
}

// measurePlainFlips measures how fast the server takes the flips if no budget follows them.
func measurePlainFlips(ctx context.Context, s *scene) (readings, error) {
	if err := s.createGuarded(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	err := s.flip(ctx)
	return readings{"wall": time.Since(began).Seconds()}, err
}

// budgets is how many budgets there are. Pods that fill no budget are left out.
func (s *scene) budgets() int { return max(1, s.size/podsOfBudget) }

func guardedName(i int) string { return fmt.Sprint("guarded-", i) }

// createGuarded creates the budgets, and Pods that are ready.
func (s *scene) createGuarded(ctx context.Context) error {
	labels := func(budget int) map[string]string { return map[string]string{"app": fmt.Sprint("web-", budget)} }
	err := s.each(ctx, s.budgets(), func(ctx context.Context, i int) error {
		least := intstr.FromInt32(podsOfBudget / 4)
		_, err := s.plain.PolicyV1().PodDisruptionBudgets("default").Create(ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("web-", i)},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: labels(i)}},
		}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	pods := s.budgets() * podsOfBudget
	err = s.createPods(ctx, pods, func(i int) *corev1.Pod {
		of := labels(i / podsOfBudget)
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: guardedName(i), Labels: of}, Spec: template(nil).Spec}
	})
	if err != nil {
		return err
	}
	return s.each(ctx, pods, func(ctx context.Context, i int) error { return s.setStatus(ctx, guardedName(i), readyPod) })
}

// flip makes all Pods unready, and every second one ready again.
func (s *scene) flip(ctx context.Context) error {
	pods := s.budgets() * podsOfBudget
	err := s.each(ctx, pods, func(ctx context.Context, i int) error { return s.setStatus(ctx, guardedName(i), unreadyPod) })
	if err != nil {
		return err
	}
	return s.each(ctx, pods/2, func(ctx context.Context, i int) error { return s.setStatus(ctx, guardedName(2*i), readyPod) })
}

// awaitHealthy waits until the status of each budget counts so many healthy Pods.
func (s *scene) awaitHealthy(ctx context.Context, healthy int32) error {
	right := 0
	return poll(ctx, fmt.Sprintf("budgets with %d healthy Pods", healthy), func() (bool, error) {
		list, err := s.plain.PolicyV1().PodDisruptionBudgets("default").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		right = 0
		for i := range list.Items {
			if list.Items[i].Status.CurrentHealthy == healthy {
				right++
			}
		}
		return right == s.budgets(), s.aliveManager()
	})
}
