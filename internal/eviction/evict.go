// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// Cause is what the condition DisruptionTarget says.
type Cause struct{ Reason, Message string }

// Evict writes the condition of a Pod, unless the Pod has it, and deletes the Pod with its own
// grace period. It reports whether it deleted the Pod: false without an error means that the Pod
// is gone already. Both writes carry the UID, so another Pod of that name stays as it is. A call
// that was interrupted can be repeated.
func Evict(ctx context.Context, pods cache.SharedInformer[*corev1.Pod], pod *corev1.Pod, cause Cause) (evicted bool, err error) {
	key := object.KeyOf(pod)
	if c := condition(pod, cause, time.Now()); c != nil {
		patch, err := client.StrategicPatch(map[string]any{
			"metadata": map[string]any{"uid": pod.UID}, // another Pod of that name is not changed
			"status":   map[string]any{"conditions": []corev1.PodCondition{*c}},
		})
		if err != nil {
			return false, err
		}
		_, err = pods.Sub("status").Patch(ctx, key, patch)
		if apierrors.IsNotFound(err) || client.Absent(err) {
			return false, nil // it went meanwhile, and another Pod may have its name
		}
		if err != nil {
			return false, fmt.Errorf("writing the condition that pod %s is about to be deleted: %w", key, err)
		}
	}
	err = pods.Delete(ctx, key, client.IfUID(pod.UID))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return false, nil // a conflict says that another Pod has its name
	case err != nil:
		return false, fmt.Errorf("deleting pod %s: %w", key, err)
	}
	return true, nil
}

// condition returns the condition that a Pod is to be given, nil if it has it.
func condition(pod *corev1.Pod, cause Cause, now time.Time) *corev1.PodCondition {
	c := corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: cause.Reason, Message: cause.Message,
		ObservedGeneration: pod.Generation, LastTransitionTime: metav1.NewTime(now),
	}
	for _, has := range pod.Status.Conditions {
		if has.Type != c.Type {
			continue
		}
		if has.Status == c.Status {
			c.LastTransitionTime = has.LastTransitionTime
		}
		if has.LastProbeTime = c.LastProbeTime; has == c {
			return nil
		}
	}
	return &c
}
