// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devicetainteviction

import (
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditionOf returns the condition EvictionInProgress of a rule, without its time. Reasons and
// messages are upstream's.
// Source: k8s.io/kubernetes/pkg/controller/devicetainteviction, maybeUpdateRuleStatus.
func conditionOf(rule *resourcev1.DeviceTaintRule, n numbers) metav1.Condition {
	c := metav1.Condition{
		Type: resourcev1.DeviceTaintConditionEvictionInProgress, Status: metav1.ConditionFalse, ObservedGeneration: rule.Generation,
	}
	var says []string
	switch rule.Spec.Taint.Effect {
	case resourcev1.DeviceTaintEffectNoExecute:
		switch {
		case n.pods > 0:
			c.Status, c.Reason = metav1.ConditionTrue, "PodsPendingEviction"
			says = append(says, fmt.Sprintf("%s to be evicted in %s.", count(n.pods, "pod needs", "pods need"), count(n.namespaces, "namespace", "different namespaces")))
		case n.evicted > 0:
			c.Reason = "Completed"
		default:
			c.Reason = "NotStarted"
		}
	case resourcev1.DeviceTaintEffectNone:
		c.Reason = "NoEffect"
		says = append(says,
			count(n.published, "published device", "published devices")+" selected.",
			count(n.allocated, "allocated device", "allocated devices")+" selected.",
			fmt.Sprintf("%s would be evicted in %s if the effect was NoExecute.", count(n.pods, "pod", "pods"), count(n.namespaces, "namespace", "different namespaces")),
			"This information will not be updated again. Recreate the DeviceTaintRule to trigger an update.")
	default:
		c.Reason = "OtherEffect"
		says = append(says, "Eviction only happens for the NoExecute effect.")
	}
	if n.evicted > 0 {
		says = append(says, count(n.evicted, "pod", "pods")+" evicted since starting the controller.")
	}
	c.Message = strings.Join(says, " ")
	return c
}

// count writes a number of things.
func count(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}
