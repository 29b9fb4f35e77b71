// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"sync"
	"time"
)

// proof notes once that a watch works: with the first event that is news, or when the
// watch has lived for a second. The answer alone proves nothing. A proxy answers 200
// while the server behind it is away, and the watch breaks right after.
type proof struct {
	mu    sync.Mutex
	over  bool // the watch has been proven, or it has ended
	timer *time.Timer
	then  func()
}

// newProof calls then once when the watch that begins now has proven itself. then is
// called by the goroutine that calls given, or by another one. It is not called, and does
// not run any more, after end has returned.
func newProof(then func()) *proof {
	p := &proof{then: then}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(shortWatch, p.given)
	return p
}

// given says that the watch works.
func (p *proof) given() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.over = true
		p.timer.Stop()
		p.then()
	}
}

// end says that the watch has ended.
func (p *proof) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.timer.Stop()
}
