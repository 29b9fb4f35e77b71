// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// nodesCase is about machines that live, and about three in ten that die at once.
var nodesCase = scaleCase{
	what:        "simulated Nodes with heartbeats, of which three in ten fail at once",
	size:        1000,
	controllers: []string{"serviceaccount-controller", "node-lifecycle-controller", "taint-eviction-controller"},
	simulated:   true,
	measure:     measureNodes,
	lines: func(int) []caseLine {
		return []caseLine{
			{name: "nodes-cpu-per-minute-of-heartbeats", unit: "s", reading: "steady", aim: aim{most: 0.5}},
			{name: "nodes-memory", unit: "MB", reading: "memory", aim: aim{most: 1. / 3}},
			{name: "nodes-seconds-until-unknown-and-tainted", unit: "s", reading: "wall", aim: aim{most: 1.05}},
			{name: "nodes-cpu-of-the-failure", unit: "s", reading: "cpu", aim: aim{most: 0.5}},
		}
	},
}

// steadyTime is how long heartbeats alone are measured: each Node sends three.
const steadyTime = 30 * time.Second

// The switch by which a simulated Node falls silent, see docs/simulated-nodes.md.
const silence = `{"metadata":{"annotations":{"sim.setpoint.io/node":"silent"}}}`

func measureNodes(ctx context.Context, s *scene) (readings, error) {
	failing := max(1, s.size*3/10)
	// All are ready and may be given Pods: the manager is done with them.
	err := s.awaitNodes(ctx, s.size, func(n *corev1.Node) bool { return readyStatus(n) == corev1.ConditionTrue && len(n.Spec.Taints) == 0 })
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
	if err := pause(ctx, steadyTime); err != nil {
		return nil, err
	}
	between, err := s.manager.cpu()
	if err != nil {
		return nil, err
	}
	found := readings{"steady": (between - before) * float64(time.Minute/steadyTime)}
	if found["memory"], err = s.manager.memory(); err != nil {
		return nil, err
	}
	err = s.each(ctx, failing, func(ctx context.Context, i int) error {
		_, err := s.plain.CoreV1().Nodes().Patch(ctx, fmt.Sprint("node-", i), types.MergePatchType, []byte(silence), metav1.PatchOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	err = s.awaitNodes(ctx, failing, func(n *corev1.Node) bool {
		return readyStatus(n) == corev1.ConditionUnknown && unreachable(n)
	})
	if err != nil {
		return nil, err
	}
	noticed := time.Now()
	last, err := s.lastRenewal(ctx, failing)
	if err != nil {
		return nil, err
	}
	found["wall"] = noticed.Sub(last).Seconds()
	after, err := s.manager.cpu()
	found["cpu"] = after - between
	return found, err
}

// lastRenewal returns the time of the last heartbeat of the Nodes that fail. Nodes that
// were made together beat together: counted from when they were told to fail, the time
// would be that until the next beat, which is chance, and not of a controller.
func (s *scene) lastRenewal(ctx context.Context, failing int) (time.Time, error) {
	leases, err := s.plain.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
	if err != nil {
		return time.Time{}, err
	}
	fails := map[string]bool{}
	for i := range failing {
		fails[fmt.Sprint("node-", i)] = true
	}
	var last time.Time
	for i := range leases.Items {
		if l := &leases.Items[i]; fails[l.Name] && l.Spec.RenewTime != nil && l.Spec.RenewTime.After(last) {
			last = l.Spec.RenewTime.Time
		}
	}
	if last.IsZero() { // the time since then would be that since the year 1
		return time.Time{}, errors.New("reading the Leases of the Nodes that fail: none of them was ever renewed")
	}
	return last, nil
}

// awaitNodes waits until so many Nodes are as they should be. It asks no more than
// once in half a second: a list of all is much.
func (s *scene) awaitNodes(ctx context.Context, want int, so func(*corev1.Node) bool) error {
	ready := 0
	return poll(ctx, fmt.Sprintf("%d Nodes", want), func() (bool, error) {
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return false, fmt.Errorf("%d of %d Nodes are as they should be: %w", ready, want, err)
		}
		list, err := s.plain.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		ready = 0
		for i := range list.Items {
			if so(&list.Items[i]) {
				ready++
			}
		}
		return ready >= want, s.aliveManager()
	})
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func readyStatus(n *corev1.Node) corev1.ConditionStatus {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return ""
}

// unreachable reports whether a Node is kept free of new Pods because it is silent.
// The taint that drives Pods off comes to one Node in ten seconds, and would take an
// hour.
func unreachable(n *corev1.Node) bool {
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeUnreachable && t.Effect == corev1.TaintEffectNoSchedule {
			return true
		}
	}
	return false
}
