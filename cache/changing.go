// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"
)

// changing is the entries of the store that are kept as they came. An object that has changed is likely to
// change again soon: a Pod that starts changes five times in some seconds, a rollout changes its
// Deployment with each of them. So a new state is not packed when it arrives. It is packed when it has been at rest for a while, if it
// is still the newest. In a profile of changes of ConfigMaps, compressing each state was a third of the CPU.
// Siblings that come to rest together are packed one after the other, so that their base is unpacked once.
//
// Only the writer uses it.
type changing struct {
	entries map[uint64]changed // by the hash of the name
	bytes   int64              // of their texts
	period  uint32
	room    *room
	timer   *time.Timer // nil until there is an entry
	resting []*entry    // that are to be packed now
	rest    func()      // what the timer calls; nil: nothing is kept as it came
	behind  bool        // a handler is behind: it holds old states, which are smaller packed
}

// changed is an entry, and the period in which it was written.
type changed struct {
	entry  *entry
	period uint32
}

const (
	// restPeriod is how often entries that are at rest are sought. An entry is packed after one period of
	// rest, two at most, and then when its turn comes.
	restPeriod = time.Second
	// changingMost is how many bytes of entries the informers of a factory keep as they came, in all. A new
	// state that finds no room is packed at once, while the changes behind it wait. Two thousand Pods that change in a second need 10 MB. A
	// burst of 20,000 Pods, as after a pause of the server, needs 50 MB for two seconds: with 8 MB, packing in the burst was a third of its CPU.
	changingMost = 64 << 20
	// largeMost is how many bytes of that large bodies may have, and largeFrom the size of one: some of those come to more in a second than all Pods.
	largeMost = 8 << 20
	largeFrom = 16 << 10
	// changingLeast is the size of a body from which it is kept as it came. To pack a smaller one costs
	// less than to store it twice.
	changingLeast = 512
	// packTime is for how long entries are packed before the reflector may go on, and packPause is for how long it goes on then. Where 1,000
	// Pods changed in a second, a hundredth of the events waited for the packing, and when that was done 64 entries at a time they waited for
	// 4 ms: each time took a millisecond, and a lock that is released and taken again at once does not change hands.
	packTime  = 200 * time.Microsecond
	packPause = time.Millisecond
	// behindFrom is how many changes may wait for a handler before new states are packed at once.
	behindFrom = 1024
)

// room is the memory for entries that are kept as they came. The informers of a factory share it.
type room struct {
	limit int64
	used  atomic.Int64
}

func newRoom(limit int64) *room { return &room{limit: limit} }

// take reports whether there was room.
func (r *room) take(bytes int64) bool {
	limit := r.limit
	if bytes >= largeFrom {
		limit = min(limit, largeMost)
	}
	if r.used.Add(bytes) <= limit {
		return true
	}
	r.used.Add(-bytes)
	return false
}

func (r *room) give(bytes int64) { r.used.Add(-bytes) }

// takes reports whether a new state of that size is kept as it came, and takes room for it. known is the
// state that it replaces, or nil.
func (c *changing) takes(known *entry, body int) bool {
	if c.rest == nil || c.behind || body < changingLeast {
		return false
	}
	size := int64(body)
	if c.room.take(size) {
		return true
	}
	// What the state before takes becomes free in a moment.
	if known != nil && known.packing == unpacked && size <= int64(len(known.body())) {
		c.room.used.Add(size)
		return true
	}
	return false
}

// add notes an entry for which takes has found room.
func (c *changing) add(hash uint64, e *entry) {
	c.bytes += int64(len(e.body()))
	if c.entries == nil {
		c.entries = map[uint64]changed{}
	}
	if len(c.entries) == 0 {
		c.start()
	}
	c.entries[hash] = changed{e, c.period}
}

func (c *changing) start() {
	if c.timer == nil {
		c.timer = time.AfterFunc(restPeriod, c.rest)
	} else {
		c.timer.Reset(restPeriod)
	}
}

// drop forgets an entry that is kept as it came, and is replaced or removed.
func (c *changing) drop(e *entry) {
	size := int64(len(e.body()))
	c.bytes -= size
	c.room.give(size)
	if hash := e.hash(); c.entries[hash].entry == e {
		delete(c.entries, hash)
	}
}

// atRest is an entry that is at rest. Siblings have the same order.
type atRest struct {
	order uintptr
	entry *entry
}

// next begins a new period, and returns what was not replaced in the last one.
func (c *changing) next(a *archive) (all []atRest) {
	for _, of := range c.entries {
		if of.period < c.period {
			order := uintptr(unsafe.Pointer(a.siblings.of(of.entry.family))) //nolint:gosec // it only orders
			all = append(all, atRest{order, of.entry})
		}
	}
	c.period++
	return all
}

// stop forgets all entries, when the informer stops.
func (c *changing) stop() {
	if c.timer != nil {
		c.timer.Stop()
	}
	c.rest = nil
	c.room.give(c.bytes)
	c.bytes, c.entries, c.resting = 0, nil, nil
}

// stopPacking ends the timer, so that nothing of a stopped informer runs.
func (i *informer) stopPacking() {
	i.writing.Lock()
	defer i.writing.Unlock()
	i.archive.changing.stop()
}

// packResting packs some of the entries that are at rest, and comes again for the others in a moment.
func (i *informer) packResting() {
	i.findResting()
	i.writing.Lock()
	defer i.writing.Unlock()
	c := &i.archive.changing
	if c.rest == nil {
		return // stopped
	}
	if len(c.resting) > 0 {
		c.resting = c.resting[i.pack(c.resting):]
	}
	switch {
	case len(c.resting) > 0:
		c.timer.Reset(packPause)
	case len(c.entries) > 0:
		c.start()
	default:
		c.entries, c.resting = nil, nil // a map keeps its memory
	}
}

// findResting finds the entries that are at rest, if all that were found before are packed. It sorts them while the reflector goes on: for 20,000 of them
// that takes 3 ms.
func (i *informer) findResting() {
	i.writing.Lock()
	defer i.writing.Unlock()
	if c := &i.archive.changing; c.rest == nil || len(c.resting) > 0 {
		return
	}
	all := i.archive.changing.next(i.archive)
	i.writing.Unlock()
	slices.SortFunc(all, func(x, y atRest) int { return cmp.Compare(x.order, y.order) })
	entries := make([]*entry, len(all))
	for n := range all {
		entries[n] = all[n].entry
	}
	i.writing.Lock()
	if c := &i.archive.changing; c.rest != nil {
		c.resting = entries
	}
}

// pack packs those of the entries that the store still has, until its time is up. It returns how many of the entries it is done with.
func (i *informer) pack(entries []*entry) (done int) {
	began := time.Now()
	i.flushLocked()
	i.mu.Lock()
	defer i.mu.Unlock()
	edit := i.store.begin()
	for _, e := range entries {
		if edit.get(e.names()) == e {
			edit.rewrite(e, i.archive.rewrite(e, i.archive.forms[e.form.encoding]))
		}
		if done++; time.Since(began) > packTime {
			break
		}
	}
	i.rewrite(edit)
	edit.commit(edit.version)
	i.countBytes()
	return done
}
