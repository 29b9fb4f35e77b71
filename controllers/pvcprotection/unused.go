// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvcprotection

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
)

// markUnused writes the condition Unused of a bound claim where it does not hold any more. The
// server is asked for Pods before it becomes True: a tool may delete what is unused.
func (r *reconciler) markUnused(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	users, err := r.cached(claim, uses)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == corev1.PersistentVolumeClaimUnused
	})
	says := func(used bool) bool {
		return at >= 0 && (claim.Status.Conditions[at].Status == corev1.ConditionTrue) == !used
	}
	if len(users) == 0 && !says(false) {
		if users, err = r.onServer(ctx, claim, uses); err != nil {
			return err
		}
	}
	used := len(users) > 0
	if says(used) {
		return nil
	}
	want := unused(used)
	want.LastTransitionTime = metav1.Now()
	claim = claim.DeepCopy()
	if at < 0 {
		claim.Status.Conditions = append(claim.Status.Conditions, want)
	} else {
		claim.Status.Conditions[at] = want
	}
	if _, err := r.claims.UpdateStatus(ctx, claim); err != nil {
		delete(r.live, claim.Namespace) // until the next try, there may be a Pod that the list does not have
		return fmt.Errorf("writing the condition %s of persistent volume claim %s: %w", want.Type, object.KeyOf(claim), err)
	}
	return nil
}

// unused returns the condition. Its words are upstream's.
func unused(used bool) corev1.PersistentVolumeClaimCondition {
	c := corev1.PersistentVolumeClaimCondition{
		Type: corev1.PersistentVolumeClaimUnused, Status: corev1.ConditionTrue,
		Reason: "NoPodsUsingPVC", Message: "No pods are currently referencing this PVC",
	}
	if used {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, "PodUsingPVC", "A pod is currently referencing this PVC"
	}
	return c
}
