// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package processors

import "time"

const (
	// every is the time between two looks. A burst of which nothing is known before waits for that long until it has twice the processors.
	every = 250 * time.Millisecond
	// calmLooks is how many looks in a row must find that half of the processors are enough, or that goroutines wait for one.
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
	full int // looks in a row that found goroutines waiting
}

// come takes how much CPU the process has used within a time, and how many goroutines wait for a processor at this moment. It returns how many
// processors the process needs from now on. On a machine that others keep busy, a process that has much to do does not use much: there the
// goroutines that wait show it.
func (g *governor) come(used, within time.Duration, waiting int) int {
	if within <= 0 {
		return g.now
	}
	if waiting < g.now {
		g.full = 0
	} else if g.full++; g.full >= calmLooks {
		g.now, g.calm, g.full = min(2*g.now, g.most), 0, 0
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

// all gives the process all processors. It has fewer again when some looks in a row find that it does not use them.
func (g *governor) all() int {
	g.now, g.calm, g.full = g.most, 0, 0
	return g.now
}
