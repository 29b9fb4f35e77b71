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

// entry is the whole state of one key. A key has at most two runs: the one
// that a worker processes, and the next one, which waits.
type entry[K comparable] struct {
	key     K
	hash    uint64    // of key, in the queue's table
	chained *entry[K] // the next of its chain there
	group   string    // Options.Fair of the key

	// The next run.
	waits     waits
	priority  Priority
	adds      int32 // merged into it
	heapIndex int32 // in the delay heap, while untilDue
	when      int64 // until when (untilDue) or since when (forWorker) it waits
	added     int64 // when it was added first
	freed     int64 // when the run before ended, if the key waited for that
	causes    causeList
	lane      *lane[K] // nil unless it can be handed out

	running         bool
	runningPriority Priority
	started         int64
	runningCauses   causeList

	// In its lane or in the list of running entries. Spare ones have a next alone.
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

// popFront takes out the first entry. The list must not be empty.
func (l *entryList[K]) popFront() *entry[K] {
	e := l.front
	l.front = e.next
	if e.next == nil {
		l.back = nil
	} else {
		e.next.prev, e.next = nil, nil
	}
	l.n--
	return e
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

// How many entries and how many causes are kept for reuse, so that a queue in
// steady state does not allocate, and the number of entries above which an emptied
// queue gives its table back. A thousand of each are 280 KB.
const (
	maxSpare = 1024
	trimPeak = 4 * maxSpare
)

// slab allocates values many at a time, more of them the more there are: in a
// burst, such as an initial list, allocation is otherwise a third of the cost of
// an add. A slab is garbage when all its values are.
type slab[T any] struct{ rest []T }

const maxSlab = 64

func (s *slab[T]) get(inUse int) *T {
	if len(s.rest) == 0 {
		s.rest = make([]T, min(1+inUse/4, maxSlab))
	}
	v := &s.rest[0]
	s.rest = s.rest[1:]
	return v
}

// newEntry makes an entry for a key that has none, and puts it into the table.
func (q *Queue[K]) newEntry(key K, hash uint64) *entry[K] {
	group := ""
	if q.fair != nil {
		group = q.groupOf(key) // before anything changes, as it may panic
	}
	e := q.spare // the last one used: it is in the processor's cache
	if e == nil {
		e = q.fresh.get(q.entries.n)
	} else {
		q.spare, e.next = e.next, nil
		q.spares--
	}
	e.key, e.hash, e.group = key, hash, group
	q.entries.insert(e)
	q.peak = max(q.peak, q.entries.n)
	return e
}

// groupOf calls the user's function, and releases the lock if that panics.
func (q *Queue[K]) groupOf(key K) string {
	returned := false
	defer q.unlockUnless(&returned)
	group := q.fair(key)
	returned = true
	return group
}

// hashUnderLock releases the lock if the key is an interface that holds a value without hash.
func (q *Queue[K]) hashUnderLock(key K) uint64 {
	returned := false
	defer q.unlockUnless(&returned)
	hash := q.entries.hash(key)
	returned = true
	return hash
}

func (q *Queue[K]) unlockUnless(returned *bool) {
	if !*returned {
		wake := q.wakeups() // for the keys that were added before
		q.mu.Unlock()
		q.signal(wake)
	}
}

// freeEntry forgets a key that has lost its last run.
func (q *Queue[K]) freeEntry(e *entry[K]) {
	q.entries.remove(e)
	if q.spares < maxSpare {
		var none K
		e.key, e.group = none, "" // keep nothing of the key alive; the rest is as a new entry has it, or written before it is read
		q.spare, e.next = e, q.spare
		q.spares++
	}
	// The table keeps the memory of its largest size. It is freed after a burst, such as a
	// first list.
	if q.entries.n == 0 && q.peak > trimPeak {
		q.entries.trim()
		q.spare, q.spares = nil, 0
		q.fresh = slab[entry[K]]{}
		q.peak = 0
		q.ready.trim()
		q.delayed.trim()
	}
}
