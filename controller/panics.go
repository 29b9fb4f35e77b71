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

// Panic describes the panics of one part of a controller.
type Panic struct {
	Times uint64
	// The last of them.
	At     time.Time
	Object string // of the event or the run; empty if there is none
	Text   string // the value of the panic
}

// panics counts the panics that the loop has recovered from, by part.
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

// contain counts a panic, and logs the first, second, fourth, eighth and so on of one part,
// with its stack: a mapping may panic for every object. A deferred function calls contain, so
// that the stack is still the stack of the panic.
func (c *core) contain(who, so, object string, panicked any) {
	text := fmt.Sprint(panicked)
	n := c.panics.note(who, object, text)
	if bits.OnesCount64(n) != 1 {
		return
	}
	stack := debug.Stack()
	if carried, ok := panicked.(interface{ Stack() []byte }); ok { // from another goroutine: owned.Batch
		stack = carried.Stack()
	}
	c.log.Error("a panic was contained", "of", who, "so", so, "object", object, "times", n,
		"panic", text, "stack", string(stack))
}
