// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package processors

import "time"

const (
	// every is the time between two looks. A burst waits for that long until it has twice the processors.
	every = 250 * time.Millisecond
	// calmLooks is how many looks in a row must find that half of the processors are enough.
	calmLooks = 4
	// busy and idle are shares of the processors. Above the first one there are twice as many at once. Below the second one there are half as
	// many, if that lasts: those use at most half of what they have then, which is far from busy.
	busy = 0.8
	idle = 0.25
)

// governor decides how many processors a process needs. It reads no clock.
type governor struct {
	most int
	now  int
	calm int // looks in a row that were idle
}

// come takes how much CPU the process has used within a time, and returns how many processors it needs from now on.
func (g *governor) come(used, within time.Duration) int {
	if within <= 0 {
		return g.now
	}
	switch share := float64(used) / float64(within) / float64(g.now); {
	case share > busy:
		g.now, g.calm = min(2*g.now, g.most), 0
	case share >= idle:
		g.calm = 0
	case g.calm < calmLooks-1:
		g.calm++
	default:
		g.now, g.calm = max(g.now/2, 1), 0
	}
	return g.now
}
