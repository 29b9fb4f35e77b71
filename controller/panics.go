// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"math/bits"
	"runtime/debug"
	"sync"
)

// panics counts those that were contained, by whose they are.
type panics struct {
	mu sync.Mutex
	by map[string]uint64
}

func (p *panics) count(who string) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil {
		p.by = map[string]uint64{}
	}
	p.by[who]++
	return p.by[who]
}

// contain counts a panic, and logs the first, the second, the fourth, the eighth and so
// on of one part, with the stack: a mapping that panics may do so for every object there
// is. It is called while the panic is recovered from, which is when the stack is still
// that of the panic.
func (c *Controller) contain(who, object string, panicked any) {
	n := c.panics.count(who)
	if bits.OnesCount64(n) != 1 {
		return
	}
	c.log.Error("a panic was contained", "of", who, "object", object, "times", n,
		"panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
}

// Panics returns how many panics have been contained, by what panicked: the reconciler, a
// predicate or a mapping of a source, a feed. What else the controller's informers call,
// their index functions, say, is theirs to contain and to log. It is safe for concurrent use.
func (c *Controller) Panics() map[string]uint64 {
	c.panics.mu.Lock()
	defer c.panics.mu.Unlock()
	return maps.Clone(c.panics.by)
}
