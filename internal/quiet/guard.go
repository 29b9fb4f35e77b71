// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package quiet

import (
	"sync"
	"time"
)

// guardEvery bounds for how long the monitor sleeps while goroutines compute. It costs a wake-up each time.
const guardEvery = 250 * time.Millisecond

// guard has a timer as long as there are open connections. A timer is never stopped or set again: a test in a bubble of simulated time may open a
// connection, and one outside of it close the last one.
type guard struct {
	mu    sync.Mutex
	open  int
	timed bool // there is a timer
}

// connections are those of the process, which has one monitor.
var connections guard

func (g *guard) opened() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open++
	g.start()
}

func (g *guard) closed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
}

// start starts a timer if there is none. mu is held.
func (g *guard) start() {
	if !g.timed {
		g.timed = true
		time.AfterFunc(guardEvery, g.again)
	}
}

func (g *guard) again() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timed = false; g.open > 0 {
		g.start()
	}
}
