// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// Predicate chooses the events that enqueue keys. A nil Predicate chooses all. If a source has
// several predicates, all of them must choose an event. Package predicate has the usual ones.
//
// The goroutine that delivers the events of a source calls it for one event at a time: a
// Predicate must be quick, and can read metadata without decoding the object (see [cache.Item]).
// If it panics, the event is chosen, since a run too many does no harm. While it does not return,
// its loop stands still. Of the changes beyond 10,000, only the newest state of each object waits
// then. When it returns, the loop handles them and enqueues every object of each [For].
type Predicate[T object.Object] func(cache.Event[T]) bool
