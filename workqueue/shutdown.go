// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"context"
	"fmt"
)

// ShutDown makes the queue ignore adds from now on, and drops delayed keys. Workers still get
// the keys that are ready and those that were added while they are processed; then Get returns
// false. A second call does nothing.
func (q *Queue[K]) ShutDown() { q.shutDown() }

// ShutDownWithDrain calls ShutDown, and waits until workers have processed every key that is
// left: they must go on calling Get. If ctx ends first, the error has the number of keys that
// are left, and the queue stays shut down. It may be called after ShutDown, and more than once.
func (q *Queue[K]) ShutDownWithDrain(ctx context.Context) error {
	drained := q.shutDown()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-drained: // at the same moment
		return nil
	default:
	}
	return fmt.Errorf("draining work queue %q: %d keys are not handed out, %d are not done: %w",
		q.name, q.ready.n, q.running.n, context.Cause(ctx))
}

func (q *Queue[K]) shutDown() (drained <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shuttingDown {
		return q.drained
	}
	q.shuttingDown = true
	q.drained = make(chan struct{})
	q.dropDelayed()
	q.closeIfDrained()
	q.waking += q.sleeping
	q.sleeping = 0
	q.cond.Broadcast()
	return q.drained
}

func (q *Queue[K]) dropDelayed() {
	d := &q.delayed
	if d.timer != nil {
		d.timer.Stop()
	}
	for _, e := range d.heap {
		e.waits = notWaiting
		q.causes.put(&e.causes)
		q.counts.ignored++
		if !e.running {
			q.freeEntry(e)
		}
	}
	d.heap = nil
}

// closeIfDrained ends the wait of ShutDownWithDrain if no key is left. A queue that is shut
// down and empty stays empty: nothing can be added.
func (q *Queue[K]) closeIfDrained() {
	if !q.shuttingDown || q.ready.n > 0 || q.running.n > 0 {
		return
	}
	select {
	case <-q.drained: // a Done for a key that is not processed
	default:
		close(q.drained)
	}
}
