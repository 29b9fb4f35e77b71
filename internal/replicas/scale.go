// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/controller/podrank"
	"github.com/setpoint-io/setpoint/controller/podwriter"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
)

// plan says how many Pods to create, or, below zero, to delete, so that of have
// there are want; at most burst in one run.
func plan(want, have, burst int) int { return max(-burst, min(burst, want-have)) }

// scale creates or deletes Pods, and returns the Pods after that.
func (k *keeper) scale(ctx context.Context, snapshot cache.Snapshot[*corev1.Pod], d *demand, mine claimed) (claimed, *failure) {
	switch n := plan(d.Replicas, len(mine.active), k.burst); {
	case n > 0:
		return k.create(ctx, snapshot, d, mine, n)
	case n < 0:
		return k.remove(ctx, snapshot, d, mine, -n)
	}
	return mine, nil
}

// create makes n more Pods.
func (k *keeper) create(ctx context.Context, snapshot cache.Snapshot[*corev1.Pod], d *demand, mine claimed, n int) (claimed, *failure) {
	wanted := slices.Repeat([]*corev1.Pod{podwriter.FromTemplate(d.whose(), d.Template)}, n)
	made, err := k.writer.Create(ctx, d.whose(), wanted, func(name string) bool {
		return snapshot.Get(object.Key{Namespace: d.key.Namespace, Name: name}).Exists()
	})
	for _, pod := range made {
		if podstate.Active(pod) {
			mine.active = append(mine.active, pod)
		}
	}
	if err != nil {
		return mine, &failure{reason: podwriter.FailedCreate, cause: err}
	}
	return mine, nil
}

// remove deletes n of the active Pods.
func (k *keeper) remove(ctx context.Context, snapshot cache.Snapshot[*corev1.Pod], d *demand, mine claimed, n int) (claimed, *failure) {
	victims := mine.active
	if n < len(victims) {
		victims = owned.Surplus(victims, n, podrank.New(podrank.Options{
			Now: k.now(), Neighbours: k.neighbours(snapshot, d), IgnoreCost: k.ignoreDeletionCost,
		}))
	}
	deleted, err := k.writer.Delete(ctx, d.whose(), victims)
	gone := make(map[*corev1.Pod]bool, n)
	for i, pod := range victims {
		if deleted[i] {
			gone[pod] = true
			if endsSlowly(pod) {
				mine.terminating++
			}
		}
	}
	mine.active = slices.DeleteFunc(mine.active, func(pod *corev1.Pod) bool { return gone[pod] })
	if err != nil {
		return mine, &failure{reason: podwriter.FailedDelete, cause: err}
	}
	return mine, nil
}

// endsSlowly reports whether an active Pod that is deleted stays for a while.
// Source: k8s.io/kubernetes/pkg/registry/core/pod, CheckGracefulDelete.
func endsSlowly(pod *corev1.Pod) bool {
	if len(pod.Finalizers) > 0 {
		return true
	}
	grace := pod.Spec.TerminationGracePeriodSeconds
	return pod.Spec.NodeName != "" && grace != nil && *grace != 0
}

// neighbours counts the active Pods of all siblings on each node.
func (k *keeper) neighbours(snapshot cache.Snapshot[*corev1.Pod], d *demand) map[string]int {
	on := map[string]int{}
	for _, uid := range d.siblings() {
		for key, item := range snapshot.ControlledBy(uid) {
			pod, err := item.Object()
			if err == nil && key.Namespace == d.key.Namespace && podstate.Active(pod) {
				on[pod.Spec.NodeName]++
			}
		}
	}
	return on
}
