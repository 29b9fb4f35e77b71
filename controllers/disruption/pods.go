// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// staleTimeout is how long a Pod may have the condition DisruptionTarget without being deleted.
// Source: k8s.io/kubernetes/pkg/controller/disruption, stalePodDisruptionTimeout.
const staleTimeout = 2 * time.Minute

// disruptionTarget is the type of a condition. Source: k8s.io/api/core/v1/generated.proto.
var disruptionTarget = wire.Path{Names: "status.conditions.type", Numbers: [4]int32{3, 2, 1}, Equal: string(corev1.DisruptionTarget)}

// needsRun chooses the Pods with which something may be wrong: several budgets select one, or it
// was about to be disrupted and is still there.
func (r *reconciler) needsRun(e cache.Event[*corev1.Pod]) bool {
	if (!e.Old.Exists() || e.Old.Labels() != e.New.Labels()) && len(r.budgetsSelecting(e.Key().Namespace, e.New.Labels())) > 1 {
		return true
	}
	if e.New.Deleting() || !e.New.MayHave(disruptionTarget) {
		return false
	}
	pod, err := e.New.Without(wire.Spec)
	return err != nil || disrupted(pod) != nil
}

// budgetsSelecting returns the names of the budgets that select a Pod, in order.
func (r *reconciler) budgetsSelecting(namespace string, labels object.Labels) []string {
	var names []string
	for key := range r.selecting.Selecting(namespace, labels) {
		names = append(names, key.Name)
	}
	slices.Sort(names)
	return names
}

// reconcilePod tells of a Pod with several budgets, and takes the condition DisruptionTarget back
// if the Pod was not disrupted.
func (r *reconciler) reconcilePod(ctx context.Context, req controller.Request) (controller.Result, error) {
	pod, err := r.pods.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	if names := r.budgetsSelecting(pod.Namespace, object.LabelsOf(pod.Labels)); len(names) > 1 && pod.DeletionTimestamp == nil {
		r.recorder.Warning(pod, "MultiplePodDisruptionBudgets", "Reconcile",
			"Pod %s matches multiple PodDisruptionBudgets: %s. The API server does not evict such a Pod.", req.Key, strings.Join(names, ", "))
	}
	if c := podstate.Condition(pod, corev1.DisruptionTarget); c != nil && c.Status == corev1.ConditionTrue {
		controller.Because(ctx, disruptedReason(c))
	}
	condition := disrupted(pod)
	if condition == nil {
		return controller.Result{}, nil
	}
	if left := time.Until(condition.LastTransitionTime.Add(staleTimeout)); left > 0 {
		return controller.Result{After: left}, nil
	}
	patch, err := client.StrategicPatch(map[string]any{
		"metadata": map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": corev1.DisruptionTarget, "status": corev1.ConditionFalse, "reason": nil, "message": nil,
			"lastTransitionTime": metav1.Now(), "observedGeneration": pod.Generation,
		}}},
	})
	if err != nil {
		return controller.Result{}, err
	}
	_, err = r.pods.Sub("status").Patch(ctx, req.Key, patch)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err), client.Absent(err):
		return controller.Result{}, nil // the change enqueues the Pod again
	case err != nil:
		return controller.Result{}, fmt.Errorf("resetting the condition DisruptionTarget of pod %s: %w", req.Key, err)
	}
	r.log.Info("a Pod was to be disrupted and is not being deleted: reset its condition DisruptionTarget", "object", req.Key.String(), "reason", condition.Reason)
	return controller.Result{}, nil
}

// disrupted returns the condition that says that a Pod is about to be disrupted, if it is not
// being deleted. The kubelet's own condition may stay for long, and that of a Pod that has ended
// stays for ever.
func disrupted(pod *corev1.Pod) *corev1.PodCondition {
	c := podstate.Condition(pod, corev1.DisruptionTarget)
	if c == nil || c.Status != corev1.ConditionTrue || c.Reason == corev1.PodReasonTerminationByKubelet ||
		podstate.Ended(pod) || pod.DeletionTimestamp != nil {
		return nil
	}
	return c
}
