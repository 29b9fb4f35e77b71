// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// ruling is what the Pod failure policy says about a failed Pod.
type ruling struct {
	action  batchv1.PodFailurePolicyAction // that of the first rule that matches; "" is none
	message string                         // why the Job fails, for the action FailJob
}

// counts reports whether the failure counts for the limits.
func (r ruling) counts() bool { return r.action != batchv1.PodFailurePolicyActionIgnore }

// judge applies the rules in their order. The first one that matches decides.
// Source: k8s.io/kubernetes/pkg/controller/job, matchPodFailurePolicy.
func judge(policy *batchv1.PodFailurePolicy, pod *corev1.Pod) ruling {
	if policy == nil {
		return ruling{}
	}
	for i := range policy.Rules {
		rule := &policy.Rules[i]
		what := hasCondition(pod, rule.OnPodConditions)
		if rule.OnExitCodes != nil {
			what = exited(pod, rule.OnExitCodes)
		}
		if what == "" || !known(rule.Action) {
			continue
		}
		r := ruling{action: rule.Action}
		if rule.Action == batchv1.PodFailurePolicyActionFailJob {
			r.message = fmt.Sprintf("%s matching %v rule at index %d", what, rule.Action, i)
		}
		return r
	}
	return ruling{}
}

// known reports whether an action is one that this version knows. A rule with another one does
// not decide.
func known(action batchv1.PodFailurePolicyAction) bool {
	switch action {
	case batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionFailIndex,
		batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionFailJob:
		return true
	}
	return false
}

// exited describes the first container whose exit code matches, or returns "". The containers
// come before the init containers. Exit code 0 never matches.
func exited(pod *corev1.Pod, on *batchv1.PodFailurePolicyOnExitCodesRequirement) string {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			ended := list[i].State.Terminated
			if ended == nil || ended.ExitCode == 0 || on.ContainerName != nil && *on.ContainerName != list[i].Name {
				continue
			}
			in := slices.Contains(on.Values, ended.ExitCode)
			if in && on.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn || !in && on.Operator == batchv1.PodFailurePolicyOnExitCodesOpNotIn {
				return fmt.Sprintf("Container %s for pod %s/%s failed with exit code %v", list[i].Name, pod.Namespace, pod.Name, ended.ExitCode)
			}
		}
	}
	return ""
}

// hasCondition describes the first condition of a Pod that matches a pattern, or returns "".
func hasCondition(pod *corev1.Pod, patterns []batchv1.PodFailurePolicyOnPodConditionsPattern) string {
	for _, c := range pod.Status.Conditions {
		for _, pattern := range patterns {
			if c.Type == pattern.Type && c.Status == pattern.Status {
				return fmt.Sprintf("Pod %s/%s has condition %v", pod.Namespace, pod.Name, c.Type)
			}
		}
	}
	return ""
}
