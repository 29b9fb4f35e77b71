// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
)

// meetsSuccessPolicy reports whether the indexes that have succeeded are enough for a rule of the
// success policy, and says which.
// Source: k8s.io/kubernetes/pkg/controller/job, matchSuccessPolicy.
func meetsSuccessPolicy(job *batchv1.Job, succeeded intervals) (message string, met bool) {
	if job.Spec.SuccessPolicy == nil || len(succeeded) == 0 {
		return "", false
	}
	for i := range job.Spec.SuccessPolicy.Rules {
		if meetsRule(&job.Spec.SuccessPolicy.Rules[i], succeeded, int(completions(job))) {
			return fmt.Sprintf("Matched rules at index %d", i), true
		}
	}
	return "", false
}

// meetsRule reports whether indexes are enough for a rule. A rule whose indexes cannot be read is
// never met.
func meetsRule(rule *batchv1.SuccessPolicyRule, succeeded intervals, completions int) bool {
	have, all := succeeded.size(), false
	if rule.SucceededIndexes != nil {
		wanted := parseIntervals(*rule.SucceededIndexes, completions)
		if len(wanted) == 0 {
			return false
		}
		have = wanted.common(succeeded)
		all = have == wanted.size()
	}
	return all || rule.SucceededCount != nil && have >= int(*rule.SucceededCount)
}
