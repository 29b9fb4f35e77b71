// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheFirstRuleThatMatchesDecidesAboutAFailedPod(t *testing.T) {
	exits := func(action batchv1.PodFailurePolicyAction, operator batchv1.PodFailurePolicyOnExitCodesOperator, container *string, codes ...int32) batchv1.PodFailurePolicyRule {
		return batchv1.PodFailurePolicyRule{Action: action, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			ContainerName: container, Operator: operator, Values: codes,
		}}
	}
	disrupted := batchv1.PodFailurePolicyRule{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
		{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
	}}
	const in, notIn = batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn
	const failJob, failIndex, ignore, counts = batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionFailIndex,
		batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionCount

	ended := func(name string, code int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "report-x"},
		Status: corev1.PodStatus{
			ContainerStatuses:     []corev1.ContainerStatus{{Name: "runs"}, ended("fine", 0), ended("main", 3)},
			InitContainerStatuses: []corev1.ContainerStatus{ended("init", 7)},
			Conditions:            []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
		},
	}
	for _, c := range []struct {
		name    string
		rules   []batchv1.PodFailurePolicyRule
		action  batchv1.PodFailurePolicyAction
		counts  bool
		message string
	}{
		{"no rule", nil, "", true, ""},
		{"no rule that matches", []batchv1.PodFailurePolicyRule{exits(failJob, in, nil, 5)}, "", true, ""},
		{"an exit code", []batchv1.PodFailurePolicyRule{exits(failJob, in, nil, 3)}, failJob, true,
			"Container main for pod team-a/report-x failed with exit code 3 matching FailJob rule at index 0"},
		{"that of an init container", []batchv1.PodFailurePolicyRule{exits(ignore, in, nil, 9), exits(failJob, in, nil, 7)}, failJob, true,
			"Container init for pod team-a/report-x failed with exit code 7 matching FailJob rule at index 1"},
		{"not in: 0 never matches", []batchv1.PodFailurePolicyRule{exits(failIndex, notIn, new("fine"), 3)}, "", true, ""},
		{"not in", []batchv1.PodFailurePolicyRule{exits(failIndex, notIn, new("main"), 4)}, failIndex, true, ""},
		{"a container of a name", []batchv1.PodFailurePolicyRule{exits(failIndex, in, new("init"), 3)}, "", true, ""},
		{"a condition", []batchv1.PodFailurePolicyRule{disrupted}, ignore, false, ""},
		{"the first of two", []batchv1.PodFailurePolicyRule{exits(counts, in, nil, 3), disrupted}, counts, true, ""},
		{"an operator of the future", []batchv1.PodFailurePolicyRule{exits(failJob, "Near", nil, 3), disrupted}, ignore, false, ""},
		{"an action of the future", []batchv1.PodFailurePolicyRule{exits("Pause", in, nil, 3), disrupted}, ignore, false, ""},
		{"a rule about nothing", []batchv1.PodFailurePolicyRule{{Action: failJob}}, "", true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := judge(&batchv1.PodFailurePolicy{Rules: c.rules}, pod)
			if got.action != c.action || got.counts() != c.counts || got.message != c.message {
				t.Errorf("judge = %+v, want %s, counts %t, %q", got, c.action, c.counts, c.message)
			}
		})
	}
	conditions := []batchv1.PodFailurePolicyRule{{Action: failJob, OnPodConditions: disrupted.OnPodConditions}}
	if got := judge(&batchv1.PodFailurePolicy{Rules: conditions}, pod); got.message != "Pod team-a/report-x has condition DisruptionTarget matching FailJob rule at index 0" {
		t.Errorf("the message is %q", got.message)
	}
}

func TestASuccessPolicyIsMetByIndexesOrByTheirNumber(t *testing.T) {
	for _, c := range []struct {
		name      string
		rules     []batchv1.SuccessPolicyRule
		succeeded string
		message   string
	}{
		{"no index", []batchv1.SuccessPolicyRule{{SucceededCount: new(int32(0))}}, "", ""},
		{"too few", []batchv1.SuccessPolicyRule{{SucceededCount: new(int32(3))}}, "1,4", ""},
		{"enough", []batchv1.SuccessPolicyRule{{SucceededCount: new(int32(3))}}, "1,4,7", "Matched rules at index 0"},
		{"all of some indexes", []batchv1.SuccessPolicyRule{{SucceededIndexes: new("1,4-6")}}, "0-1,4-8", "Matched rules at index 0"},
		{"not all of them", []batchv1.SuccessPolicyRule{{SucceededIndexes: new("1,4-6")}}, "0-1,4,5", ""},
		{"enough of them", []batchv1.SuccessPolicyRule{{SucceededIndexes: new("1,4-6"), SucceededCount: new(int32(3))}}, "1,4,5", "Matched rules at index 0"},
		{"others do not count", []batchv1.SuccessPolicyRule{{SucceededIndexes: new("1,4-6"), SucceededCount: new(int32(3))}}, "0,2,3,4", ""},
		{"the second rule", []batchv1.SuccessPolicyRule{{SucceededIndexes: new("9")}, {SucceededCount: new(int32(1))}}, "0", "Matched rules at index 1"},
		{"indexes that cannot be read", []batchv1.SuccessPolicyRule{{SucceededIndexes: new("leader")}}, "0-9", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := newJob("report", wants(10, 10), isIndexed, func(j *batchv1.Job) { j.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: c.rules} })
			message, met := meetsSuccessPolicy(job, parseIntervals(c.succeeded, 10))
			if message != c.message || met != (c.message != "") {
				t.Errorf("meetsSuccessPolicy = %q, %t; want %q", message, met, c.message)
			}
		})
	}
}
