// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"container/heap"
	"time"
)

// delaySet holds the entries that wait for a time, the earliest first. Its timer
// runs a function when the earliest is due; nothing runs in between.
type delaySet[K comparable] struct {
	heap  delayHeap[K]
	timer *time.Timer
	armed int64 // when the timer fires; meaningful while set
	set   bool
}

func (d *delaySet[K]) remove(e *entry[K]) { heap.Remove(&d.heap, int(e.heapIndex)) }

// trim gives back the memory of a burst. The set must be empty.
func (d *delaySet[K]) trim() { d.heap = nil }

// delay lets a run wait until due, or until the time it already waits for if that
// is earlier.
func (q *Queue[K]) delay(e *entry[K], due int64) {
	d := &q.delayed
	switch {
	case e.waits == notWaiting:
		e.waits, e.when = untilDue, due
		heap.Push(&d.heap, e)
	case due < e.when:
		e.when = due
		heap.Fix(&d.heap, int(e.heapIndex))
	default:
		return
	}
	q.arm()
}

// arm sets the timer for the earliest entry. A timer that is set too early is left
// alone: it finds nothing due and is set again.
func (q *Queue[K]) arm() {
	d := &q.delayed
	if len(d.heap) == 0 || d.set && d.armed <= d.heap[0].when {
		return
	}
	d.armed, d.set = d.heap[0].when, true
	wait := time.Duration(d.armed - q.now())
	if d.timer == nil {
		d.timer = time.AfterFunc(wait, q.fire)
	} else {
		d.timer.Reset(wait)
	}
}

// fire makes ready what is due. The timer calls it.
func (q *Queue[K]) fire() {
	now := q.now()
	q.mu.Lock()
	d := &q.delayed
	d.set = false
	for len(d.heap) > 0 && d.heap[0].when <= now {
		e := heap.Pop(&d.heap).(*entry[K])
		q.makeReady(e, e.when)
	}
	q.arm()
	wake := q.wakeups()
	q.mu.Unlock()
	q.signal(wake)
}

// delayHeap is a heap.Interface over entries by due time.
type delayHeap[K comparable] []*entry[K]

func (h delayHeap[K]) Len() int           { return len(h) }
func (h delayHeap[K]) Less(i, j int) bool { return h[i].when < h[j].when }

func (h delayHeap[K]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = int32(i), int32(j)
}

func (h *delayHeap[K]) Push(x any) {
	e := x.(*entry[K])
	e.heapIndex = int32(len(*h))
	*h = append(*h, e)
}

func (h *delayHeap[K]) Pop() any {
	old := *h
	last := len(old) - 1
	e := old[last]
	old[last] = nil
	*h = old[:last]
	return e
}
