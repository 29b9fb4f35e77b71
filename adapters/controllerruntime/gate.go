// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"sync"
	"sync/atomic"
)

// gate is a condition that holds once several channels are closed. It implements DoneChecker of
// client-go.
type gate struct {
	name     string
	channels []<-chan struct{}
	ends     ends

	once sync.Once
	done chan struct{}
	held atomic.Bool // the condition holds, for good
}

// ends are channels of which one is closed when a condition can no longer hold. One that is nil never
// is.
type ends struct{ view, cache, handler <-chan struct{} }

func newGate(name string, channels []<-chan struct{}, e ends) *gate {
	return &gate{name: name, channels: channels, ends: e}
}

// Name returns what the condition is about.
func (g *gate) Name() string { return g.name }

// Done returns a channel that is closed when the condition holds. A goroutine waits for several
// channels, from the first call: most conditions have no program that waits for them.
func (g *gate) Done() <-chan struct{} {
	if len(g.channels) == 1 {
		return g.channels[0]
	}
	g.once.Do(func() {
		g.done = make(chan struct{})
		if g.holds() {
			close(g.done)
			return
		}
		go g.wait()
	})
	return g.done
}

func (g *gate) holds() bool {
	if g.held.Load() {
		return true
	}
	for _, c := range g.channels {
		if !isClosed(c) {
			return false
		}
	}
	g.held.Store(true)
	return true
}

// wait closes done if all channels are closed at the end. A channel may be ready together with an end, and a select takes
// either of them, so the channels decide.
func (g *gate) wait() {
	g.awaitAll()
	if g.holds() {
		close(g.done)
	}
}

// awaitAll returns when all channels are closed, or when the condition can no longer hold.
func (g *gate) awaitAll() {
	for _, c := range g.channels {
		select {
		case <-c:
		case <-g.ends.view:
			return
		case <-g.ends.cache:
			return
		case <-g.ends.handler:
			return
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
