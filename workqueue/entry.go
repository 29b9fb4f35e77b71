// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue

// waits says what the next run of a key waits for.
type waits uint8

const (
	notWaiting waits = iota // nothing to run after the current run, if there is one
	untilDue                // in the delay heap
	forWorker               // in a lane, or, while the key is processed, for Done
)

// entry is all the queue knows of one key. A key has at most two runs: the one
// that a worker processes, and the next one, which waits. An entry is in the map
// as long as it has either.
type entry[K comparable] struct {
	key   K
	group string // Options.Fair of the key

	// The next run.
	waits     waits
	priority  Priority
	adds      int32 // merged into it
	heapIndex int32 // in the delay heap, while untilDue
	due       int64 // while untilDue
	queued    int64 // while forWorker: since when
	causes    causeList
	lane      *lane[K] // nil unless it can be handed out

	// The current run.
	running         bool
	runningPriority Priority
	started         int64
	runningCauses   causeList

	// In its lane or in the list of running entries, never in both.
	prev, next *entry[K]
}

// entryList is a doubly linked list through the entries themselves.
type entryList[K comparable] struct {
	front, back *entry[K]
	n           int
}

func (l *entryList[K]) pushBack(e *entry[K]) {
	e.prev, e.next = l.back, nil
	if l.back == nil {
		l.front = e
	} else {
		l.back.next = e
	}
	l.back = e
	l.n++
}

func (l *entryList[K]) pushFront(e *entry[K]) {
	e.prev, e.next = nil, l.front
	if l.front == nil {
		l.back = e
	} else {
		l.front.prev = e
	}
	l.front = e
	l.n++
}

func (l *entryList[K]) remove(e *entry[K]) {
	if e.prev == nil {
		l.front = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.back = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
	l.n--
}

// Spare parts kept for reuse, and the number of entries above which an emptied
// queue gives its map back. 1,024 entries with a cause each are 350 KB.
const (
	maxSpare = 1024
	trimPeak = 4096
)

// entryPool keeps entries that are out of use, so that a queue in steady state
// does not allocate.
type entryPool[K comparable] struct {
	free *entry[K] // linked through next
	n    int
}

func (p *entryPool[K]) get() *entry[K] {
	e := p.free
	if e == nil {
		return new(entry[K])
	}
	p.free, e.next = e.next, nil
	p.n--
	return e
}

func (p *entryPool[K]) put(e *entry[K]) {
	if p.n < maxSpare {
		*e = entry[K]{next: p.free} // keep nothing of the key alive
		p.free = e
		p.n++
	}
}

// newEntry makes an entry for a key that has none and puts it into the map.
func (q *Queue[K]) newEntry(key K) *entry[K] {
	group := ""
	if q.fair != nil {
		group = q.fair(key) // before anything changes, should it panic
	}
	e := q.spareEntries.get()
	e.key, e.group = key, group
	q.entries[key] = e
	q.peak = max(q.peak, len(q.entries))
	return e
}

// freeEntry forgets a key that neither waits nor is processed.
func (q *Queue[K]) freeEntry(e *entry[K]) {
	delete(q.entries, e.key)
	q.spareEntries.put(e)
	// A Go map keeps the memory of its largest size. After a burst, such as an
	// initial list, give it back.
	if len(q.entries) == 0 && q.peak > trimPeak {
		q.entries = make(map[K]*entry[K])
		q.peak = 0
		q.ready.trim()
		q.delayed.trim()
	}
}
