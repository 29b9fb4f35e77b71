// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import "sync"

// pulse is the common knowledge of a factory's informers about their server. After a failure
// each informer retries on its own, up to half a minute later. When the first one lists or
// watches again, it wakes the others. One of them logs an outage for all. The zero pulse is
// ready to use, and a nil pulse never beats.
type pulse struct {
	mu   sync.Mutex
	wait chan struct{}
	away bool // an informer has noticed that the server is away
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

// miss records that the server is away, and reports whether that is new.
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
