// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"sync"
	"time"
)

// Pace remembers when the object of each key was written last. It is safe for concurrent use. The zero Pace
// remembers nothing, and has no pause.
type Pace[K comparable] struct {
	// Pause is the least time between two writes of one key. It is set before the first use.
	Pause time.Duration

	mu   sync.Mutex
	last map[K]time.Time
}

// Left returns what is left of the pause after the last write of a key; 0 or less is nothing.
func (p *Pace[K]) Left(key K, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.last[key]
	if !ok {
		return 0
	}
	return last.Add(p.Pause).Sub(now)
}

// Wrote begins the pause after a write of a key.
func (p *Pace[K]) Wrote(key K, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[K]time.Time{}
	}
	p.last[key] = at
}

// Forget ends the pause of a key, and frees what is remembered of it: call it when the object is gone.
func (p *Pace[K]) Forget(key K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, key)
}
