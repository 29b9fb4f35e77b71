// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/setpoint-io/setpoint/wire"
)

// queries are the lists of paths with which readers call [Item.MayHave] for the objects of one informer. The first query of a state answers
// all queries that there have been for any state, and the entry keeps the answers. Where all controllers run, ten query each Pod for claims and
// disks, and each of them unpacked it: at the start of a manager beside 50,000 Pods that was 14 % of the CPU.
type queries struct {
	known atomic.Pointer[querySet]
	mu    sync.Mutex // held by writers
}

// querySet is immutable.
type querySet struct {
	each  [][]wire.Path
	paths []wire.Path // of all queries, each path once
	of    []uint64    // by query: which of the paths it has
	full  bool        // the next query has no place
}

// queriesMost is the number of queries whose answers an entry keeps, two bits for each.
const queriesMost = 8

// number returns the number of a query, which is added if there is room for it; below 0: there is none.
func (q *queries) number(paths []wire.Path) (s *querySet, number int) {
	if s = q.known.Load(); s != nil {
		if number = s.find(paths); number >= 0 || s.full {
			return s, number
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if s = q.known.Load(); s == nil {
		s = new(querySet)
	}
	if number = s.find(paths); number >= 0 || s.full {
		return s, number
	}
	s = s.with(slices.Clone(paths))
	q.known.Store(s)
	return s, s.find(paths)
}

func (s *querySet) find(paths []wire.Path) int {
	return slices.IndexFunc(s.each, func(each []wire.Path) bool { return slices.Equal(each, paths) })
}

// with returns the queries and one more, or the same queries as a full set.
func (s *querySet) with(paths []wire.Path) *querySet {
	next := &querySet{each: append(slices.Clone(s.each), paths), paths: slices.Clone(s.paths), of: slices.Clone(s.of)}
	own := uint64(0)
	for _, p := range paths {
		at := slices.Index(next.paths, p)
		if at < 0 {
			at = len(next.paths)
			next.paths = append(next.paths, p)
		}
		own |= 1 << at
	}
	if len(next.paths) > wire.WhichMost {
		return &querySet{each: s.each, paths: s.paths, of: s.of, full: true}
	}
	next.of = append(next.of, own)
	next.full = len(next.each) == queriesMost
	return next
}

// answer returns the bits of an entry that answer all queries.
func (s *querySet) answer(e *entry) uint32 {
	found := ^uint64(0) // what cannot be read may have anything
	_ = e.read(func(raw []byte) error {
		found = e.form.encoding.Which(raw, s.paths)
		return nil
	})
	answers := uint32(0)
	for number, own := range s.of {
		answers |= answered << number
		if found&own != 0 {
			answers |= mayHave << number
		}
	}
	return answers
}

// mayHave is [Item.MayHave].
func (e *entry) mayHave(paths []wire.Path) bool {
	if e.form.encoding != wire.Protobuf {
		return true
	}
	s, number := e.form.queries.number(paths)
	if number < 0 {
		may := true
		err := e.read(func(raw []byte) error {
			may = e.form.encoding.MayHave(raw, paths...)
			return nil
		})
		return may || err != nil
	}
	answers := e.notes.Load()
	if answers&(answered<<number) == 0 {
		answers = s.answer(e)
		e.notes.Or(answers)
	}
	return answers&(mayHave<<number) != 0
}

// The notes of an entry are the relist that saw it last, which the writer writes, and the answers to queries, which readers add.
const (
	relistBits = 16
	ofRelist   = 1<<relistBits - 1
	answered   = 1 << relistBits         // bit of the first query: it is answered
	mayHave    = answered << queriesMost // and the answer is yes
)

// mark notes the relist that saw the entry last. The writer calls it.
func (e *entry) mark(number uint16) {
	e.notes.And(^uint32(ofRelist))
	e.notes.Or(uint32(number))
}

// marked returns the relist that saw the entry last.
func (e *entry) marked() uint16 { return uint16(e.notes.Load()) }
