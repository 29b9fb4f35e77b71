// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"time"

	policyv1 "k8s.io/api/policy/v1"
)

// pause is the least time between two writes of a budget of which no eviction depends on the
// second one.
const pause = 100 * time.Millisecond

// mayWait reports whether no eviction depends on a change of a status: too few Pods are healthy
// before and after it, and nothing but their number changes. Then the API server refuses every
// eviction that it would refuse with the new status. It compares the number of healthy Pods with
// the desired one for Pods that are not ready, if the policy is IfHealthyBudget.
// Source: k8s.io/kubernetes/pkg/registry/core/pod/storage/eviction.go.
//
// Every other change is written at once. One that allows fewer disruptions must be, as the API
// server would allow too many meanwhile. One that allows more should be: kubectl drain asks again
// after five seconds.
func mayWait(was, is policyv1.PodDisruptionBudgetStatus) bool {
	if was.DisruptionsAllowed != 0 || was.CurrentHealthy >= was.DesiredHealthy || is.CurrentHealthy >= is.DesiredHealthy {
		return false
	}
	was.CurrentHealthy = is.CurrentHealthy
	return same(was, is)
}
