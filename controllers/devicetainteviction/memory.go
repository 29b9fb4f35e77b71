// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devicetainteviction

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// planned are the Pods that are to go. An Event says that such a Pod may stay after all. The zero
// planned is empty, and safe for concurrent use.
type planned struct {
	mu   sync.Mutex
	pods map[object.Key]types.UID
}

func (p *planned) note(pod object.Key, uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pods == nil {
		p.pods = map[object.Key]types.UID{}
	}
	p.pods[pod] = uid
}

// forget removes a Pod, and returns the UID that was noted, "" if there was none.
func (p *planned) forget(pod object.Key) types.UID {
	p.mu.Lock()
	defer p.mu.Unlock()
	uid := p.pods[pod]
	delete(p.pods, pod)
	return uid
}

func (p *planned) has(pod object.Key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, has := p.pods[pod]
	return has
}

// evicted counts the Pods that were evicted for each rule since the start. The zero evicted is
// empty, and safe for concurrent use.
type evicted struct {
	mu    sync.Mutex
	rules map[types.UID]int
}

func (e *evicted) count(rule types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.rules == nil {
		e.rules = map[types.UID]int{}
	}
	e.rules[rule]++
}

// forget forgets a rule that is gone.
func (e *evicted) forget(rule types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.rules, rule)
}

func (e *evicted) of(rule types.UID) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rules[rule]
}
