// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// everythingCase is a manager with all controllers that are on by default: on a cluster in which nothing
// happens but heartbeats, and started with many objects that ask for no work.
var everythingCase = scaleCase{
	what:        fmt.Sprintf("all controllers on simulated Nodes at rest, and started again with %d objects for each Node", objectsOfNode),
	size:        1_000,
	controllers: []string{"*"},
	simulated:   true,
	signs:       true,
	// Without these flags there is no node-ipam-controller. The ranges are those of simulated Nodes.
	args:    []string{"--allocate-node-cidrs", "--cluster-cidr", "10.128.0.0/10,fd5e:7a01::/48"},
	measure: measureEverything,
	lines: func(size int) []caseLine {
		return []caseLine{
			{name: "everything-idle-memory", unit: "MB", reading: "idle", aim: aim{most: 1. / 3}},
			{name: "everything-cpu-per-minute-at-rest", unit: "s", reading: "steady", aim: aim{most: 0.5}},
			{name: fmt.Sprintf("everything-synced-with-%d-objects", size*objectsOfNode), unit: "s", reading: "synced", aim: aim{most: 0.5}},
			{name: "everything-cpu-of-the-start", unit: "s", reading: "start-cpu", aim: aim{most: 0.5}},
			{name: "everything-memory-with-objects", unit: "MB", reading: "full", aim: aim{most: 1. / 3}},
		}
	},
}

// objectsOfNode is how many objects there are for each Node.
const objectsOfNode = 50

func measureEverything(ctx context.Context, s *scene) (readings, error) {
	err := s.awaitNodes(ctx, s.size, func(n *corev1.Node) bool {
		return readyStatus(n) == corev1.ConditionTrue && len(n.Spec.Taints) == 0 && n.Spec.PodCIDR != ""
	})
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, steadyTime/3); err != nil {
		return nil, err
	}
	before, err := s.manager.cpu()
	if err != nil {
		return nil, err
	}
	endProfile := s.profiler.during(ctx, "steady")
	if err := pause(ctx, steadyTime); err != nil {
		return nil, err
	}
	after, err := s.manager.cpu()
	if err := errors.Join(err, endProfile()); err != nil {
		return nil, err
	}
	found := readings{"steady": (after - before) * float64(time.Minute/steadyTime)}
	if found["idle"], err = s.manager.memory(); err != nil {
		return nil, err
	}
	s.manager.stop()
	if err := s.createQuietObjects(ctx); err != nil {
		return nil, err
	}
	if err := s.createProbes(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	if s.manager, err = s.start(); err != nil {
		return nil, err
	}
	if err := s.awaitProbes(ctx); err != nil {
		return nil, err
	}
	found["synced"] = time.Since(began).Seconds()
	if found["start-cpu"], err = s.manager.cpu(); err != nil {
		return nil, err
	}
	if err := pause(ctx, steadyTime/3); err != nil {
		return nil, err
	}
	found["full"], err = s.manager.memory()
	return found, err
}

// quietKinds are kinds of which an object asks no controller for anything.
func quietKinds() []content {
	quiet := []string{"configmaps", "secrets", "serviceaccounts", "podtemplates", "networkpolicies", "ingresses", "roles", "leases", "controllerrevisions"}
	return slices.DeleteFunc(slices.Clone(contents), func(c content) bool { return !slices.Contains(quiet, c.resource) })
}

// createQuietObjects creates as many Pods that nothing schedules as objects of the other kinds together.
func (s *scene) createQuietObjects(ctx context.Context) error {
	kinds := quietKinds()
	return s.each(ctx, s.size*objectsOfNode, func(ctx context.Context, i int) error {
		name := fmt.Sprint("quiet-", i)
		if i%2 == 0 {
			labels := map[string]string{"app": fmt.Sprint("quiet-", i%100), "pod-template-hash": "7d9c6b54f8"}
			_, err := s.plain.CoreV1().Pods("default").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: template(labels).Spec}, metav1.CreateOptions{})
			return err
		}
		c := &kinds[i/2%len(kinds)]
		_, err := s.dynamic.Resource(c.groupVersionResource()).Namespace("default").Create(ctx, c.make("default", name), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating a %s: %w", c.kind, err)
		}
		return nil
	})
}
