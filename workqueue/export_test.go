// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue

// What only tests need.
const (
	MaxCauses       = maxCauses
	DefaultAgeStep  = defaultAgeStep
	DefaultMaxDelay = defaultMaxDelay
)

// ShuttingDown reports whether ShutDown or ShutDownWithDrain was called.
func (q *Queue[K]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.shuttingDown
}

// Len returns how many keys are ready to be handed out: neither those that wait
// for a time, nor those that wait for their own processing to end.
func (q *Queue[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready.n
}

// InspectKey returns what the queue knows of one key. It is in none of the lists
// if the queue does not hold it.
func (q *Queue[K]) InspectKey(key K) Inspection[K] {
	q.mu.Lock()
	defer q.mu.Unlock()
	var in Inspection[K]
	e := q.entries.get(key, q.entries.hash(key))
	switch {
	case e == nil:
	case e.running:
		in.Running = []Running[K]{q.inspectRunning(e)}
	case e.waits == forWorker:
		in.Ready = []Waiting[K]{q.inspectWaiting(e)}
	default:
		in.Delayed = []Waiting[K]{q.inspectWaiting(e)}
	}
	return in
}
