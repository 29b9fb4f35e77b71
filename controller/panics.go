// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"math/bits"
	"runtime/debug"
	"sync"
	"time"
)

// Panic is what is known of the panics of one part of a controller.
type Panic struct {
	Times uint64
	// The last of them.
	At     time.Time
	Object string // in whose event or run; empty where there is none
	Text   string // what it panicked with
}

// panics remembers those that were contained, by whose they are.
type panics struct {
	mu sync.Mutex
	by map[string]Panic
}

func (p *panics) note(who, object, text string) (times uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil {
		p.by = map[string]Panic{}
	}
	times = p.by[who].Times + 1
	p.by[who] = Panic{Times: times, At: time.Now(), Object: object, Text: text}
	return times
}

// contain remembers a panic, and logs the first, the second, the fourth, the eighth and so
// on of one part, with the stack and what follows from it: a mapping that panics may do so
// for every object there is. It is called while the panic is recovered from, which is when
// the stack is still that of the panic.
func (c *core) contain(who, so, object string, panicked any) {
	text := fmt.Sprint(panicked)
	n := c.panics.note(who, object, text)
	if bits.OnesCount64(n) != 1 {
		return
	}
	stack := debug.Stack()
	if carried, ok := panicked.(*carriedPanic); ok {
		stack = carried.stack
	}
	c.log.Error("a panic was contained", "of", who, "so", so, "object", object, "times", n,
		"panic", text, "stack", string(stack))
}
