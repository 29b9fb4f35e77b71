// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/shortlist"
)

// mostNamed bounds the Pods that an Event or a reason names.
const mostNamed = 5

// Codes of the reasons why a budget allows no eviction.
const (
	codeNotComputed = "BudgetCannotBeComputed"
	codeNoPods      = "NoPodsExpected"
	codeUsedUp      = "BudgetUsedUp"
	codeUnderWay    = "EvictionUnderWay"
)

// codeDisrupted repeats the condition DisruptionTarget of a Pod: the record has it when the Pod is gone.
const codeDisrupted = "PodIsDisrupted"

// disruptedReason says why a Pod is to be deleted.
func disruptedReason(c *corev1.PodCondition) controller.Reason {
	return controller.Reason{
		Code: codeDisrupted, Text: "the Pod is to be deleted ({reason}: {message})", Params: controller.With("reason", c.Reason, "message", c.Message),
		Ends: "the Pod is deleted, or the condition is reset",
	}
}

// reasonsOf returns why a budget allows no eviction.
func reasonsOf(failure error, s policyv1.PodDisruptionBudgetStatus, c census) (all []controller.Reason) {
	add := func(code, text, ends string, params ...any) {
		all = append(all, controller.Reason{Code: code, Text: text, Params: controller.With(params...), Ends: ends})
	}
	switch {
	case failure != nil:
		add(codeNotComputed, "the budget allows no eviction, because its numbers cannot be computed: {error}", "the computation succeeds", "error", failure.Error())
	case s.ExpectedPods == 0:
		add(codeNoPods, "the budget expects no Pods", "a Pod that it selects is created")
	case s.DisruptionsAllowed == 0:
		add(codeUsedUp, "the budget allows no eviction: {healthy} of its Pods {healthy?is|are} healthy, and {desired} must be", "a Pod becomes ready",
			"healthy", s.CurrentHealthy, "desired", s.DesiredHealthy)
	}
	if len(c.disrupted) > 0 {
		add(codeUnderWay, "the eviction of {pods} was allowed, and the Pods are not being deleted yet: they do not count as healthy until {time}",
			"the Pods are deleted", "pods", shortlist.Join(slices.Sorted(maps.Keys(c.disrupted)), mostNamed), "time", c.recheck.UTC().Format(time.RFC3339))
	}
	return all
}
