// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue

import "hash/maphash"

// table finds the entry of a key. It does what a Go map would do in half of the
// time, because the entries are chained through themselves and know the hash of
// their key: a key that comes and goes is hashed once, before the queue is locked,
// and not at each look, write and delete.
//
// It grows as it is filled, two chains at each insert, so that no worker waits while a
// large table is copied.
type table[K comparable] struct {
	seed   maphash.Seed
	n      int
	chains []*entry[K] // as many as a power of two

	old   []*entry[K] // half as many, being moved to chains; nil if none is
	moved int         // how many chains of old have been moved
}

// minChains are those of a table that has not grown.
const minChains = 16

func newTable[K comparable]() table[K] {
	return table[K]{seed: maphash.MakeSeed(), chains: make([]*entry[K], minChains)}
}

func (t *table[K]) hash(key K) uint64 { return maphash.Comparable(t.seed, key) }

// chain returns the head of the chain in which an entry of that hash stands.
func (t *table[K]) chain(hash uint64) **entry[K] {
	if t.old != nil {
		if i := hash & uint64(len(t.old)-1); i >= uint64(t.moved) {
			return &t.old[i]
		}
	}
	return &t.chains[hash&uint64(len(t.chains)-1)]
}

// get returns the entry of a key, or nil.
func (t *table[K]) get(key K, hash uint64) *entry[K] {
	e := *t.chain(hash)
	for e != nil && (e.hash != hash || e.key != key) {
		e = e.chained
	}
	return e
}

// insert takes in an entry whose key is not there.
func (t *table[K]) insert(e *entry[K]) {
	if t.n == len(t.chains) && t.old == nil {
		t.old, t.moved = t.chains, 0
		t.chains = make([]*entry[K], 2*len(t.old))
	}
	if t.old != nil {
		t.move()
		t.move() // it is done before the table is full again
	}
	head := t.chain(e.hash)
	e.chained, *head = *head, e
	t.n++
}

// move moves a chain to where its entries will be.
func (t *table[K]) move() {
	if t.old == nil {
		return
	}
	next := t.old[t.moved]
	t.old[t.moved] = nil
	t.moved++
	if t.moved == len(t.old) {
		t.old = nil
	}
	for next != nil {
		e := next
		next = e.chained
		head := &t.chains[e.hash&uint64(len(t.chains)-1)]
		e.chained, *head = *head, e
	}
}

// remove takes out an entry that is there.
func (t *table[K]) remove(e *entry[K]) {
	at := t.chain(e.hash)
	for *at != e {
		at = &(*at).chained
	}
	*at, e.chained = e.chained, nil
	t.n--
}

// trim gives back the memory of a burst. The table must be empty.
func (t *table[K]) trim() {
	t.chains, t.old = make([]*entry[K], minChains), nil
}
