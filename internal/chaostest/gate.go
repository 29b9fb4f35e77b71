// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package chaostest

import "sync"

// Gate is a door that handlers wait at while it is closed. The zero Gate is open.
type Gate struct {
	mu     sync.Mutex
	closed chan struct{} // nil: the gate is open; closed when it opens
}

// Open opens the gate, or closes it.
func (g *Gate) Open(yes bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case yes && g.closed != nil:
		close(g.closed)
		g.closed = nil
	case !yes && g.closed == nil:
		g.closed = make(chan struct{})
	}
}

// Pass returns when the gate is open.
func (g *Gate) Pass() {
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	if closed != nil {
		<-closed
	}
}
