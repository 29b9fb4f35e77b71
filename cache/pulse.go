// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import "sync"

// pulse is what the informers of a factory know together of the server that they read
// from. Each tries again in its own time after a failure, up to half a minute later;
// when the first one has a whole state or a watch that works, the others need not wait. And one outage is one for
// all of them: the first one that notices says so. The zero pulse is ready, and a nil
// one never beats.
type pulse struct {
	mu   sync.Mutex
	wait chan struct{}
	away bool // somebody has noticed that the server is away
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

// miss notes that the server is away, and reports whether that is news.
func (p *pulse) miss() bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	news := !p.away
	p.away = true
	return news
}

func (p *pulse) beat() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = false
	if p.wait != nil {
		close(p.wait)
		p.wait = nil
	}
}
