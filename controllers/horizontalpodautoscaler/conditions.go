// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// set sets a condition of the status. The time of its transition changes with its status.
func (p *plan) set(typ autoscalingv2.HorizontalPodAutoscalerConditionType, is bool, reason, message string) {
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	i := slices.IndexFunc(p.status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool { return c.Type == typ })
	if i < 0 {
		i = len(p.status.Conditions)
		p.status.Conditions = append(p.status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{Type: typ})
	}
	c := &p.status.Conditions[i]
	if c.Status != status {
		c.Status, c.LastTransitionTime = status, metav1.NewTime(p.now)
	}
	c.Reason, c.Message = reason, message
}

// unset removes a condition.
func (p *plan) unset(typ autoscalingv2.HorizontalPodAutoscalerConditionType) {
	p.status.Conditions = slices.DeleteFunc(p.status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool { return c.Type == typ })
}

// inactive says that the target is not scaled by its metrics.
func (p *plan) inactive(reason, message string) {
	p.set(autoscalingv2.ScalingActive, false, reason, message)
}

// atZero says that this controller has taken the last replicas away.
func (p *plan) atZero() {
	p.set(autoscalingv2.ScaledToZero, true, "ScaledToZero", "the HPA controller scaled the workload to zero")
}

// notAtZero says that it has not.
func (p *plan) notAtZero() {
	p.set(autoscalingv2.ScaledToZero, false, "NotScaledToZero", "the HPA controller did not scale the workload to zero")
}

// isTrue reports whether a condition is there, and true.
func isTrue(all []autoscalingv2.HorizontalPodAutoscalerCondition, typ autoscalingv2.HorizontalPodAutoscalerConditionType) bool {
	return slices.ContainsFunc(all, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
		return c.Type == typ && c.Status == corev1.ConditionTrue
	})
}
