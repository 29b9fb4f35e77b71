// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import "sync"

// pulse tells those who wait for a server that somebody has reached it. Each
// informer of a factory tries again in its own time after a failure, up to half a
// minute later; when the first one gets through, the others need not wait. The
// zero pulse is ready, and a nil one never beats.
type pulse struct {
	mu   sync.Mutex
	wait chan struct{}
}

// next returns a channel that is closed with the next beat.
func (p *pulse) next() <-chan struct{} {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wait == nil {
		p.wait = make(chan struct{})
	}
	return p.wait
}

func (p *pulse) beat() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wait != nil {
		close(p.wait)
		p.wait = nil
	}
}
