// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	pdbhelper "k8s.io/component-helpers/apps/poddisruptionbudget"

	"github.com/setpoint-io/setpoint/controller/podlimits"
	"github.com/setpoint-io/setpoint/internal/podstate"
)

// deletionTimeout is how long a Pod whose eviction the API server has allowed counts as gone
// while it is not being deleted.
// Source: k8s.io/kubernetes/pkg/controller/disruption, DeletionTimeout.
const deletionTimeout = 2 * time.Minute

// census is what is known of the Pods of a budget.
type census struct {
	healthy int32
	// disrupted are the Pods whose eviction was allowed and whose deletion is not seen yet, with
	// the time of the eviction.
	disrupted map[string]metav1.Time
	// kept are Pods that were not deleted within the timeout after their eviction was allowed.
	kept []*corev1.Pod
	// recheck is when the first of the disrupted Pods counts again, or the zero time.
	recheck time.Time
}

// count counts the Pods of a budget. The API server enters a Pod in the status before it deletes
// the Pod: until the deletion is seen, the Pod is not healthy, even if it is ready.
func count(pods []*corev1.Pod, evicted map[string]metav1.Time, now time.Time) census {
	c := census{disrupted: map[string]metav1.Time{}}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		at, found := evicted[pod.Name]
		if until := at.Add(deletionTimeout); found && !until.Before(now) {
			c.disrupted[pod.Name] = at
			if c.recheck.IsZero() || until.Before(c.recheck) {
				c.recheck = until
			}
			continue
		}
		if found {
			c.kept = append(c.kept, pod)
		}
		if podstate.Ready(pod) {
			c.healthy++
		}
	}
	return c
}

// statusOf returns the status of a budget.
func statusOf(pdb *policyv1.PodDisruptionBudget, b podlimits.Budget, c census) policyv1.PodDisruptionBudgetStatus {
	next := policyv1.PodDisruptionBudget{Status: policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: pdb.Generation,
		DisruptedPods:      c.disrupted,
		DisruptionsAllowed: b.Allowed(c.healthy),
		CurrentHealthy:     c.healthy,
		DesiredHealthy:     b.Healthy,
		ExpectedPods:       b.Expected,
		Conditions:         conditionsOf(pdb),
	}}
	if len(c.disrupted) == 0 {
		next.Status.DisruptedPods = nil
	}
	pdbhelper.UpdateDisruptionAllowedCondition(&next)
	// A reason that says what failed has a message. The helper leaves it in place.
	if is := meta.FindStatusCondition(next.Status.Conditions, policyv1.DisruptionAllowedCondition); is != nil {
		is.Message = ""
	}
	return next.Status
}

// failed returns the status of a budget that cannot be computed: it allows no disruption, and says
// why. The numbers stay as they were.
func failed(pdb *policyv1.PodDisruptionBudget, why error) policyv1.PodDisruptionBudgetStatus {
	status := *pdb.Status.DeepCopy()
	status.DisruptionsAllowed = 0
	status.Conditions = conditionsOf(pdb)
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
		Reason: policyv1.SyncFailedReason, Message: why.Error(), ObservedGeneration: status.ObservedGeneration,
	})
	return status
}

// conditionsOf returns a copy of the conditions of a budget.
func conditionsOf(pdb *policyv1.PodDisruptionBudget) []metav1.Condition {
	return append([]metav1.Condition{}, pdb.Status.Conditions...)
}

// same reports whether two statuses say the same.
func same(a, b policyv1.PodDisruptionBudgetStatus) bool {
	return apiequality.Semantic.DeepEqual(a, b)
}
