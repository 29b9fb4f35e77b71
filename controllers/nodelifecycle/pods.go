// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// newlyBound chooses Pods that have been bound to a node.
func newlyBound(e cache.Event[*corev1.Pod]) bool {
	if e.Kind == cache.Deleted {
		return false
	}
	if e.Kind != cache.Updated && e.Kind != cache.Resync {
		return true
	}
	before, err := e.Old.Text(wire.NodeName)
	if err != nil {
		return true
	}
	now, err := e.New.Text(wire.NodeName)
	return err == nil && now != before
}

// notReadyPatch returns the patch that marks this state of a Pod not ready, and
// false if it is not ready anyway.
func notReadyPatch(pod *corev1.Pod, now time.Time) (client.Patch, bool, error) {
	was := podstate.Condition(pod, corev1.PodReady)
	if was == nil || was.Status == corev1.ConditionFalse {
		return client.Patch{}, false, nil
	}
	patch, err := client.StrategicPatch(map[string]any{
		"metadata": map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": was.Type, "status": corev1.ConditionFalse, "lastTransitionTime": metav1.NewTime(now),
		}}},
	})
	return patch, true, err
}

// markPods marks the Pods of a silent node not ready, so that Services send them
// nothing. Errors of single Pods do not stop the rest; they are joined.
func (r *reconciler) markPods(ctx context.Context, node string) error {
	var errs []error
	for key, item := range r.onNode.Find(node) {
		pod, err := item.Object()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err := r.markPod(ctx, key, pod); err != nil {
			errs = append(errs, fmt.Errorf("marking pod %s of node %s not ready: %w", key, node, err))
		}
	}
	return errors.Join(errs...)
}

func (r *reconciler) markPod(ctx context.Context, key object.Key, pod *corev1.Pod) error {
	patch, needed, err := notReadyPatch(pod, time.Now())
	if err != nil || !needed {
		return err
	}
	_, err = r.pods.Sub("status").Patch(ctx, key, patch)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	r.events.Warning(pod, "NodeNotReady", "MarkNotReady", "Node is not ready")
	return nil
}
