// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"container/heap"
	"sync"

	"github.com/setpoint-io/setpoint/object"
)

// versionWaits has the waits for versions.
type versionWaits struct {
	mu   sync.Mutex
	seen object.Version
	heap waitHeap
}

type versionWait struct {
	version object.Version
	done    chan struct{}
	index   int // in the heap, -1: not there
}

// wait returns a channel that is closed once version has been seen, and a function that ends
// the wait.
func (v *versionWaits) wait(version object.Version) (<-chan struct{}, func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	w := &versionWait{version: version, done: make(chan struct{}), index: -1}
	if v.seen.AtLeast(version) {
		close(w.done)
		return w.done, func() {}
	}
	heap.Push(&v.heap, w)
	return w.done, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if w.index >= 0 {
			heap.Remove(&v.heap, w.index)
		}
	}
}

// set goes back to a version, where a server has lost what came after it.
func (v *versionWaits) set(version object.Version) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !version.AtLeast(v.seen) {
		v.seen = version
	}
}

func (v *versionWaits) advance(version object.Version) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !version.AtLeast(v.seen) {
		return
	}
	v.seen = version
	for len(v.heap) > 0 && version.AtLeast(v.heap[0].version) {
		close(heap.Pop(&v.heap).(*versionWait).done)
	}
}

type waitHeap []*versionWait

func (h waitHeap) Len() int           { return len(h) }
func (h waitHeap) Less(i, j int) bool { return h[i].version.Compare(h[j].version) < 0 }
func (h waitHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *waitHeap) Push(x any) {
	w := x.(*versionWait)
	w.index = len(*h)
	*h = append(*h, w)
}

func (h *waitHeap) Pop() any {
	old := *h
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	w.index = -1
	return w
}
