// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"maps"
	"sync"
	"sync/atomic"
)

// counts is what an informer says of itself. It is written by the reflector and read by
// any goroutine.
type counts struct {
	events atomic.Uint64
	rate   meter        // of events
	heard  atomic.Int64 // when the server last said anything, unix nanoseconds
	raw    atomic.Int64
	stored atomic.Int64

	mu       sync.Mutex
	restarts [2]map[string]uint64 // by reason
}

func (c *counts) event() { c.events.Add(1) }

// together has the rate take account of the events that have come since the last call.
func (c *counts) together() { c.rate.note(c.events.Load()) }

// perSecond returns the rate of the events.
func (c *counts) perSecond() float64 {
	c.together()
	return c.rate.read()
}

// restarted implements sink.
func (i *informer) restarted(what restart, why error) {
	reason := "its time was up"
	switch {
	case why != nil:
		reason = class(why)
	case what == relisted:
		reason = "the first state"
	}
	i.counts.mu.Lock()
	defer i.counts.mu.Unlock()
	if i.counts.restarts[what] == nil {
		i.counts.restarts[what] = map[string]uint64{}
	}
	i.counts.restarts[what][reason]++
}

// restarted returns a copy of the counts.
func (c *counts) restarted(what restart) map[string]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.restarts[what])
}
