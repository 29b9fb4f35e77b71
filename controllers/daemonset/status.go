// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/object"
)

// statusRetries is how often a status is written again after a conflict.
const statusRetries = 2

// statusOf returns the status of a DaemonSet with the Pods that it has now. Of several Pods on a
// node, the one counts that is bound, or else the oldest.
// Source: k8s.io/kubernetes/pkg/controller/daemon, updateDaemonSetStatus.
func statusOf(v *view, collisions *int32) appsv1.DaemonSetStatus {
	status := *v.set.Status.DeepCopy() // conditions belong to other clients
	status.CollisionCount = collisions
	status.ObservedGeneration = v.set.Generation
	status.DesiredNumberScheduled, status.CurrentNumberScheduled, status.NumberMisscheduled = 0, 0, 0
	status.NumberReady, status.UpdatedNumberScheduled, status.NumberAvailable = 0, 0, 0
	for _, at := range v.places {
		on := v.pods[at.name]
		switch {
		case !at.run && len(on) > 0:
			status.NumberMisscheduled++
			continue
		case !at.run:
			continue
		}
		status.DesiredNumberScheduled++
		if len(on) == 0 {
			continue
		}
		status.CurrentNumberScheduled++
		if on[0].ready {
			status.NumberReady++
		}
		if v.isAvailable(on[0]) {
			status.NumberAvailable++
		}
		if v.revision.has(on[0]) {
			status.UpdatedNumberScheduled++
		}
	}
	status.NumberUnavailable = status.DesiredNumberScheduled - status.NumberAvailable
	return status
}

// writeStatus writes a status that differs. If the DaemonSet has changed since it was read, the
// status goes onto the newest one: its counts stay true, and its observedGeneration names the
// spec that it belongs to.
func (r *reconciler) writeStatus(ctx context.Context, set *appsv1.DaemonSet, status appsv1.DaemonSetStatus) error {
	if equality.Semantic.DeepEqual(set.Status, status) {
		return nil
	}
	next := *set
	next.Status = status
	for try := 0; ; try++ {
		_, err := r.sets.UpdateStatus(ctx, &next)
		if err == nil || apierrors.IsNotFound(err) {
			return nil // it may have been deleted meanwhile
		}
		if !apierrors.IsConflict(err) || try == statusRetries {
			return fmt.Errorf("writing the status: %w", err)
		}
		live, err := r.sets.Server().Get(ctx, object.KeyOf(set))
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("writing the status: reading the DaemonSet after a conflict: %w", err)
		case live.UID != set.UID:
			return nil // another one has its name
		}
		status.Conditions = live.Status.Conditions
		next = *live
		next.Status = status
	}
}
