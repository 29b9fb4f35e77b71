// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"sync"
	"time"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/setpoint-io/setpoint/object"
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

// pace remembers when budgets were written. It is safe for concurrent use. The zero pace is empty.
type pace struct {
	mu   sync.Mutex
	last map[object.Key]time.Time
}

// left returns what is left of the pause after the last write of a budget; 0 or less is nothing.
func (p *pace) left(budget object.Key, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.last[budget]
	if !ok {
		return 0
	}
	return last.Add(pause).Sub(now)
}

func (p *pace) wrote(budget object.Key, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[object.Key]time.Time{}
	}
	p.last[budget] = at
}

func (p *pace) forget(budget object.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, budget)
}
