// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"math/bits"
	"time"
)

// Priority orders the keys that are ready: a higher one is handed out first. See
// the package comment for how waiting raises it.
type Priority int8

// The priorities of controllers. The values between are free to use.
const (
	Low    Priority = -100 // the first list and resyncs: nothing has changed
	Normal Priority = 0    // something has changed
	High   Priority = 100  // a user waits for it
)

const (
	defaultAgeStep = 100 * time.Millisecond

	// maxAgeStep keeps a priority times the step within an int64 of nanoseconds.
	maxAgeStep = 10_000 * time.Hour

	// maxPassed is how many keys of a higher priority go before a key that has aged past
	// them: aged keys get a quarter of the turns while both kinds wait. If aged keys took
	// precedence, the first list of a large cluster would delay every later change.
	maxPassed = 3
)

const priorities = 1 << 8

// readySet holds the keys that can be handed out, by priority.
type readySet[K comparable] struct {
	n      int
	step   int64 // nanoseconds of waiting worth one level; negative: none
	fair   bool
	passed int // turns in a row that an aged key was passed over
	used   [priorities / 64]uint64
	levels [priorities]*level[K]
}

func (r *readySet[K]) init(step time.Duration, fair bool) {
	if step == 0 {
		step = defaultAgeStep
	}
	r.step = int64(min(step, maxAgeStep))
	r.fair = fair
}

func index(p Priority) int { return int(p) + priorities/2 }

// push puts an entry behind those of its priority and group.
func (r *readySet[K]) push(e *entry[K]) {
	r.laneFor(e).keys.pushBack(e)
	r.n++
}

// raise moves a waiting entry up to a higher priority: behind the keys of that
// priority and group, or in front of them if it has waited longer than the first.
// Without the second half, a key that has aged could lose its turn by being raised.
func (r *readySet[K]) raise(e *entry[K], p Priority) {
	r.remove(e)
	e.priority = p
	l := r.laneFor(e)
	if first := l.keys.front; first != nil && e.when < first.when {
		l.keys.pushFront(e)
	} else {
		l.keys.pushBack(e)
	}
	r.n++
}

// pop removes the entry whose turn it is. The set must not be empty.
func (r *readySet[K]) pop() *entry[K] {
	lv, i := r.turn()
	l := lv.front
	e := l.keys.popFront()
	e.lane = nil
	r.n--
	if l.keys.front != nil {
		lv.rotate(l)
	} else if lv.leave(l) {
		r.used[i/64] &^= 1 << (i % 64)
	}
	return e
}

// laneFor finds the lane of an entry, puts it in turn, and marks the entry as
// being there.
func (r *readySet[K]) laneFor(e *entry[K]) *lane[K] {
	i := index(e.priority)
	lv := r.levels[i]
	if lv == nil {
		lv = newLevel[K](r.fair)
		r.levels[i] = lv
	}
	r.used[i/64] |= 1 << (i % 64)
	l := lv.lane(e.group)
	e.lane = l
	return l
}

func (r *readySet[K]) remove(e *entry[K]) {
	l := e.lane
	l.keys.remove(e)
	e.lane = nil
	r.n--
	if l.keys.front == nil && l.level.leave(l) {
		i := index(e.priority)
		r.used[i/64] &^= 1 << (i % 64)
	}
}

// turn returns the level of the next key, and its place: the highest level, or the level whose
// next key has aged most if that key has been passed over maxPassed times.
func (r *readySet[K]) turn() (lv *level[K], at int) {
	var highest, aged *level[K]
	var top, old int // their places
	var best int64
	for w := len(r.used) - 1; w >= 0; w-- {
		for word := r.used[w]; word != 0; {
			bit := 63 - bits.LeadingZeros64(word)
			word &^= 1 << bit
			i := w*64 + bit
			lv := r.levels[i]
			if highest == nil {
				highest, top = lv, i
				if r.step < 0 || r.n == 1 {
					return highest, top
				}
				aged, old, best = lv, i, r.rank(lv, i)
			} else if rank := r.rank(lv, i); rank < best {
				aged, old, best = lv, i, rank
			}
		}
	}
	if aged == highest {
		return highest, top
	}
	if r.passed < maxPassed {
		r.passed++
		return highest, top
	}
	r.passed = 0
	return aged, old
}

// rank orders keys by priority and age together, lowest first. That a key gains
// one level for each step it waits means that key a is before key b when
//
//	a.priority + (now-a.queued)/step > b.priority + (now-b.queued)/step
//
// where now cancels out: ranks do not change as time passes.
func (r *readySet[K]) rank(lv *level[K], i int) int64 {
	return lv.next().when - int64(i-priorities/2)*r.step
}

// trim frees the memory of a burst. The set must be empty.
func (r *readySet[K]) trim() { clear(r.levels[:]) }
