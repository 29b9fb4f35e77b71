// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package quiet

import (
	"sync"
	"time"
)

// guardEvery bounds for how long the monitor sleeps while a goroutine computes. It costs a wake-up each time.
const guardEvery = 250 * time.Millisecond

// guard has a timer as long as there are open connections.
type guard struct {
	mu    sync.Mutex
	open  int
	timer *time.Timer // nil until there is a connection
}

var connections guard

func (g *guard) opened() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open++; g.open > 1 {
		return
	}
	if g.timer == nil {
		g.timer = time.AfterFunc(guardEvery, g.again)
	} else {
		g.timer.Reset(guardEvery)
	}
}

func (g *guard) closed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open--; g.open == 0 {
		g.timer.Stop()
	}
}

func (g *guard) again() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open > 0 {
		g.timer.Reset(guardEvery)
	}
}
