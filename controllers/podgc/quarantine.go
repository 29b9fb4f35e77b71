// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"iter"
	"time"
)

// quarantine knows since when nodes have been missing to which Pods are bound. An
// informer of Pods may be ahead of one of Nodes.
type quarantine struct {
	time  time.Duration
	since map[string]time.Time
}

// look takes the names of all nodes that are missing now and returns those that have
// been so for long enough. A node that is back is forgotten.
func (q *quarantine) look(missing iter.Seq[string], now time.Time) (due []string) {
	since := map[string]time.Time{}
	for name := range missing {
		began, known := q.since[name]
		if !known {
			began = now
		}
		since[name] = began
		if now.Sub(began) >= q.time {
			due = append(due, name)
		}
	}
	q.since = since
	return due
}

// again restarts the time of a node: it exists, or the server did not answer.
func (q *quarantine) again(name string) { delete(q.since, name) }
