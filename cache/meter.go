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
}

const meterMemory = 30 * time.Second

func (m *meter) tick() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.rate = m.decayed(now) + 1/meterMemory.Seconds()
	m.at = now
}

func (m *meter) read() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.decayed(time.Now())
}

func (m *meter) decayed(now time.Time) float64 {
	return m.rate * math.Exp(-float64(now.Sub(m.at))/float64(meterMemory))
}
