// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"slices"
	"time"

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
	if n == len(mine.active) {
		victims := mine.active
		deleted, err := k.writer.Delete(ctx, d.whose(), victims)
		return mine.without(victims, deleted), failedDelete(err)
	}
	now := k.now()
	victims := owned.Surplus(mine.active, n, podrank.New(podrank.Options{
		Now: now, Neighbours: k.neighbours(snapshot, d), IgnoreCost: k.ignoreDeletionCost,
	}))
	k.observeAges(mine.active, victims, now)
	var ready, unready []*corev1.Pod
	for _, pod := range victims {
		if podstate.Ready(pod) {
			ready = append(ready, pod)
		} else {
			unready = append(unready, pod)
		}
	}
	// A Pod that was chosen because it is not ready may have become ready since, and another one
	// may go in its place. The ready Pods are deleted once those that are not ready are gone.
	deleted, err := k.writer.DeleteUnchanged(ctx, d.whose(), unready)
	mine = mine.without(unready, deleted)
	mine.kept = err == nil && slices.Contains(deleted, false)
	if err != nil || mine.kept {
		return mine, failedDelete(err)
	}
	deleted, err = k.writer.Delete(ctx, d.whose(), ready)
	return mine.without(ready, deleted), failedDelete(err)
}

// without returns the Pods that are left after some are deleted. deleted belongs to victims.
func (c claimed) without(victims []*corev1.Pod, deleted []bool) claimed {
	gone := make(map[*corev1.Pod]bool, len(victims))
	for i, pod := range victims {
		if deleted[i] {
			gone[pod] = true
			if endsSlowly(pod) {
				c.terminating++
			}
		}
	}
	// A new slice: victims may be the old one.
	var active []*corev1.Pod
	for _, pod := range c.active {
		if !gone[pod] {
			active = append(active, pod)
		}
	}
	c.active = active
	return c
}

// failedDelete returns the failure of deletes, or nil.
func failedDelete(err error) *failure {
	if err == nil {
		return nil
	}
	return &failure{reason: podwriter.FailedDelete, cause: err}
}

// observeAges reports how old the ready victims are, in proportion to the youngest Pod that is ready.
// Source: k8s.io/kubernetes/pkg/controller/replicaset, reportSortingDeletionAgeRatioMetric, which loses
// the fraction and panics when the youngest Pod is younger than a millisecond.
func (k *keeper) observeAges(active, victims []*corev1.Pod, now time.Time) {
	if k.ageRatio == nil {
		return
	}
	var youngest time.Time
	for _, pod := range active {
		if podstate.Ready(pod) && pod.CreationTimestamp.After(youngest) {
			youngest = pod.CreationTimestamp.Time
		}
	}
	least := max(time.Millisecond, now.Sub(youngest))
	for _, pod := range victims {
		if podstate.Ready(pod) {
			age := max(time.Millisecond, now.Sub(pod.CreationTimestamp.Time))
			k.ageRatio(float64(age) / float64(least))
		}
	}
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
		for _, item := range snapshot.ControlledBy(d.key.Namespace, uid) {
			pod, err := item.Object()
			if err == nil && podstate.Active(pod) {
				on[pod.Spec.NodeName]++
			}
		}
	}
	return on
}
