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

// scalePeriod is after how long a budget counts again if only the server knows the size of an owner: the controller
// watches no custom kinds. A Pod that comes or goes because of a new size is an event. So the period is for sizes that no
// Pod follows, such as a larger one for which no Pod can be created. For as long, the API server allows evictions by the
// old size.
//
// A read is of one small object, and there is one for each owner of a budget. At half a minute, a thousand such budgets
// cost 33 reads a second. That is half of the reads of scales for as many HorizontalPodAutoscalers, which clusters have.
const scalePeriod = 30 * time.Second

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
	// live is set if a size was read from the server. No event says that it has changed.
	live bool
}

// next returns after how long a budget counts again without an event, or 0 if it does not.
func (c *census) next(now time.Time) time.Duration {
	var after time.Duration
	if !c.recheck.IsZero() {
		after = max(c.recheck.Sub(now), 0) + time.Second
	}
	if c.live && (after == 0 || after > scalePeriod) {
		return scalePeriod
	}
	return after
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
