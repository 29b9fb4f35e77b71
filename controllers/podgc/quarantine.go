// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/runs"
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

// codeMissing is the code of the reason why the Pods of a missing node are not removed yet.
const codeMissing = "NodeMissingTooShort"

// because states which nodes are missing for too short a time.
func (q *quarantine) because(ctx context.Context, now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(q.since)) {
		due := q.since[name].Add(q.time)
		if !now.Before(due) {
			continue
		}
		controller.Because(ctx, controller.Reason{
			Code: codeMissing, Text: "the node is missing, and its Pods stay until {time}",
			Params: controller.With("time", due.UTC().Format(time.RFC3339)), Ends: "that time, if the server does not know the node either",
			About: runs.Object{Kind: "Node", Name: name},
		})
	}
}
