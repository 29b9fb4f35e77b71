// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"sync"
	"sync/atomic"
	"time"
)

// Budget is memory for decoded objects, which the informers of one or more factories share. An
// object in it is not decoded again when it is read. All methods are safe for concurrent use.
//
// The budget keeps the objects of lists, and single objects that are read more than once. If it is
// full, a new object takes the place of objects that were not read since the budget last looked
// at them. If there are none, it is not kept this time. So a list of more objects than fit leaves
// a part of them in the budget, and the next list finds that part decoded.
//
// When an object changes, its old state leaves the budget at once. An object that is not read
// for some minutes leaves it too.
type Budget struct {
	limit   int64
	full    atomic.Bool // an object has found no room since one left
	decodes atomic.Uint64

	mu    sync.Mutex
	slots []*kept // nil: free
	free  []int   // numbers of free slots
	hand  int     // the slot that is checked next
	count int
	bytes int64
	idle  *time.Timer // calls sweep; nil until there is an object
}

// DefaultDecodedBudget is how many bytes of decoded objects a factory keeps without the option
// [DecodedBudget].
const DefaultDecodedBudget = 4 << 20

// sweepEvery is how often the budget looks for objects that are not read any more. An object that
// is not read leaves after once to twice that time.
const sweepEvery = 2 * time.Minute

// NewBudget returns a budget of that many bytes. With 0 or less it keeps no object.
func NewBudget(bytes int64) *Budget { return &Budget{limit: max(bytes, 0)} }

// BudgetStatus is the state of a budget.
type BudgetStatus struct {
	Limit   int64  // in bytes
	Bytes   int64  // estimated memory of the objects that it keeps
	Objects int    // that it keeps
	Decodes uint64 // objects that readers had to decode, because they were not in memory
}

// Status returns the state of the budget.
func (b *Budget) Status() BudgetStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	return BudgetStatus{Limit: b.limit, Bytes: b.bytes, Objects: b.count, Decodes: b.decodes.Load()}
}

// keeps reports whether the budget ever keeps an object. A nil budget does not.
func (b *Budget) keeps() bool { return b != nil && b.limit > 0 }

// countDecode counts an object that was decoded.
func (b *Budget) countDecode() {
	if b != nil {
		b.decodes.Add(1)
	}
}

// add keeps an object if there is room, or if an object leaves for it. It reports whether it did.
//
// The algorithm is the clock, with one difference: if the hand finds an object that was read, the
// new object is not added. A list that is read again and again and does not fit would otherwise
// drive out each object just before it is read.
func (b *Budget) add(k *kept) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k.bytes > b.limit || k.decoded.kept.Load() != nil {
		return false
	}
	for b.bytes+k.bytes > b.limit {
		b.full.Store(true)
		if old := b.slots[b.hand]; old != nil {
			if old.used.Swap(false) {
				b.advance()
				return false
			}
			b.evict(old)
		}
		b.advance()
	}
	b.place(k)
	return true
}

// advance moves the hand to the next slot. There is none after the last object has left.
func (b *Budget) advance() {
	if len(b.slots) > 0 {
		b.hand = (b.hand + 1) % len(b.slots)
	}
}

func (b *Budget) place(k *kept) {
	if last := len(b.free) - 1; last >= 0 {
		k.slot = b.free[last]
		b.free = b.free[:last]
		b.slots[k.slot] = k
	} else {
		k.slot = len(b.slots)
		b.slots = append(b.slots, k)
	}
	b.count++
	b.bytes += k.bytes
	k.used.Store(true)
	k.decoded.kept.Store(k)
	if b.idle == nil {
		b.idle = time.AfterFunc(sweepEvery, b.sweep)
	} else if b.count == 1 {
		b.idle.Reset(sweepEvery)
	}
}

func (b *Budget) evict(k *kept) {
	k.decoded.kept.Store(nil)
	b.slots[k.slot] = nil
	b.free = append(b.free, k.slot)
	b.count--
	b.bytes -= k.bytes
	if b.count == 0 {
		b.slots, b.free, b.hand = nil, nil, 0
		b.idle.Stop()
	}
}

// remove drops an object, unless it has left already.
func (b *Budget) remove(k *kept) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.has(k) {
		b.evict(k)
		b.full.Store(false)
	}
}

func (b *Budget) has(k *kept) bool { return k.slot < len(b.slots) && b.slots[k.slot] == k }

// forget drops the objects of an informer.
func (b *Budget) forget(c *content) {
	b.drop(func(k *kept) bool { return k.content == c })
}

// sweep drops the objects that were not read since the last sweep.
func (b *Budget) sweep() {
	b.drop(func(k *kept) bool { return !k.used.Swap(false) })
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count > 0 {
		b.idle.Reset(sweepEvery)
	}
}

func (b *Budget) drop(which func(*kept) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range b.slots {
		if k != nil && which(k) {
			b.evict(k)
			b.full.Store(false)
		}
	}
}
