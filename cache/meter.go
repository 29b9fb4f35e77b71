// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"math"
	"sync"
	"time"
)

// meter says how often something has happened lately: events a second, with a weight
// that falls by e in meterMemory.
type meter struct {
	mu   sync.Mutex
	rate float64
	at   time.Time
	seen uint64 // how often it had happened then
}

const meterMemory = 30 * time.Second

// note takes account of what has happened since the last call: total is how often it has in all. It is called once for what
// has happened together, since it reads the clock and computes an exponential: that was 3 % of the CPU of an event of a ConfigMap.
func (m *meter) note(total uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if total == m.seen {
		return
	}
	now := time.Now()
	m.rate = m.decayed(now) + float64(total-m.seen)/meterMemory.Seconds()
	m.at, m.seen = now, total
}

func (m *meter) read() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.decayed(time.Now())
}

func (m *meter) decayed(now time.Time) float64 {
	return m.rate * math.Exp(-float64(now.Sub(m.at))/float64(meterMemory))
}
