// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// servicesCase is what the event of a Pod costs that no Service selects, in a
// namespace with few Services and with many.
var servicesCase = scaleCase{
	what:        "CPU of one Pod event with few and with many Services in its namespace",
	size:        5000,
	controllers: []string{"serviceaccount-controller", "endpointslice-controller", "endpoints-controller"},
	measure:     measureServices,
	lines: func(size int) []caseLine {
		return []caseLine{
			{name: fmt.Sprintf("pod-event-cpu-with-%d-services", fewServices), unit: "µs", reading: "few", aim: aim{most: 0.5}},
			{name: fmt.Sprintf("pod-event-cpu-with-%d-services", size), unit: "µs", reading: "many", aim: aim{most: 0.5}},
			// A tenth is what the clock of /proc leaves open.
			{name: "pod-event-cpu-many-over-few", unit: "x", reading: "growth", aim: aim{value: 1.2}},
		}
	},
}

const (
	fewServices = 10
	// servicePods are made and deleted: two events each.
	servicePods = 4000
)

func measureServices(ctx context.Context, s *scene) (readings, error) {
	found := readings{}
	made := 0
	for _, step := range []struct {
		name     string
		services int
	}{{"few", fewServices}, {"many", max(s.size, fewServices)}} {
		if err := s.createServices(ctx, made, step.services); err != nil {
			return nil, err
		}
		made = step.services
		l, err := s.work(ctx, step.name, func() error {
			name := func(i int) string { return fmt.Sprintf("%s-%d", step.name, i) }
			err := s.createPods(ctx, servicePods, func(i int) *corev1.Pod {
				return &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: name(i), Labels: map[string]string{"app": "unselected"}},
					Spec:       template(nil).Spec,
				}
			})
			if err != nil {
				return err
			}
			return s.each(ctx, servicePods, func(ctx context.Context, i int) error {
				return s.plain.CoreV1().Pods("default").Delete(ctx, name(i), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
			})
		})
		if err != nil {
			return nil, err
		}
		found[step.name] = l.cpu / (2 * servicePods) * 1e6
	}
	found["growth"] = found["many"] / found["few"]
	return found, nil
}

// createServices makes the Services from one number to another and waits until the
// manager has done for them what it does.
func (s *scene) createServices(ctx context.Context, from, to int) error {
	err := s.each(ctx, to-from, func(ctx context.Context, i int) error {
		name := fmt.Sprint("service-", from+i)
		_, err := s.plain.CoreV1().Services("default").Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.ServiceSpec{
				ClusterIP: corev1.ClusterIPNone, // there are not addresses enough for all
				Selector:  map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80}},
			},
		}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return poll(ctx, "the EndpointSlices of the Services", func() (bool, error) {
		list, err := s.plain.DiscoveryV1().EndpointSlices("default").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		return len(list.Items) >= to, s.aliveManager()
	})
}
