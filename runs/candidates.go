// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"bytes"
	"cmp"
	"container/heap"
	"iter"
	"math"
)

// candidate is an entry that a query may choose, by what its header has. Headers are cheap: a record has a hundred
// thousand entries, and an answer a hundred runs. So the entries of an answer are chosen and ordered by their headers, and decoded
// one after the other until the answer is complete.
type candidate struct {
	in     *ring
	at     uint64
	last   int64
	number uint64
	key    uint64
}

// candidates is a heap with the newest candidate at its top.
type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(c[i].last, c[j].last), cmp.Compare(c[i].number, c[j].number)) > 0
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

// Push implements heap.Interface.
func (c *candidates) Push(one any) { *c = append(*c, one.(candidate)) }

// Pop implements heap.Interface.
func (c *candidates) Pop() any {
	one := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return one
}

// candidates returns the entries of a ring that a query may choose and whose headers a function accepts, in no order. An entry may be
// there more than once.
func (r *Record) candidates(in *ring, q Query, may func(header) bool) (all candidates) {
	earliest := int64(math.MinInt64)
	if !q.Since.IsZero() {
		earliest = q.Since.UnixNano()
	}
	add := func(at uint64, h header) {
		if r.counts(in, h) && h.last() >= earliest && may(h) {
			all = append(all, candidate{in: in, at: at, last: h.last(), number: h.uint64(atNumber), key: h.key()})
		}
	}
	if q.Object.Name == "" || q.Object.Kind == "" {
		r.scan(in, add)
		return all
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, term := range r.termsOf(q.Object) {
		for at := range in.with(term) {
			add(at, header(in.at(at)))
		}
	}
	return all
}

// termsOf returns the terms of the entries about an object: the writes and reasons of any loop, and its key in the loops over
// its kind. The caller holds the lock.
func (r *Record) termsOf(o Object) []uint32 {
	key := o.Ref().Key
	all := []uint32{r.index.object(o.Group, o.Kind, key)}
	for _, l := range r.loops {
		if l.group == o.Group && l.kind == o.Kind {
			all = append(all, term(r.index.key(l.hash, key)))
		}
	}
	return all
}

// anyHeader is for [Record.candidates]: it accepts all headers.
func anyHeader(header) bool { return true }

// isPresent reports whether an entry is the last one of its loop and key, and of this process. What a run of an earlier
// process stated is not present any more: its key runs again when the process begins, if its object still exists.
func (r *Record) isPresent(of header) bool {
	if of.restored() {
		return false
	}
	for _, in := range [...]*ring{r.kept, r.idle} {
		at, found := in.newest(of.key())
		if !found {
			continue
		}
		h := header(in.at(at))
		if cmp.Or(cmp.Compare(h.last(), of.last()), cmp.Compare(h.uint64(atNumber), of.uint64(atNumber))) > 0 {
			return false
		}
	}
	return true
}

// counts reports whether an entry counts: it has not been moved, and is not as good as dropped.
func (r *Record) counts(in *ring, h header) bool {
	return !h.moved() && (in != r.idle || h.last() >= r.horizon)
}

// scan calls a function for each entry of a ring. It holds the lock for one segment at a time.
func (r *Record) scan(in *ring, each func(at uint64, h header)) {
	var position uint64
	for done := false; !done; {
		r.mu.Lock()
		position = max(position, in.oldest)
		end := min((position/uint64(in.size)+1)*uint64(in.size), in.next)
		for at := range in.between(position, end) {
			each(at, header(in.at(at)))
		}
		done = end == in.next
		r.mu.Unlock()
		position = end
	}
}

// copiedAtOnce is how many entries are copied while the lock is held.
const copiedAtOnce = 32

// newestFirst yields the runs of candidates, the newest first. It decodes only the runs that it yields, and those that it has copied
// with them. It holds no lock while it yields.
func (r *Record) newestFirst(all candidates) iter.Seq[Run] {
	return func(yield func(Run) bool) {
		heap.Init(&all)
		var entries [][]byte
		var before candidate
		for len(all) > 0 {
			entries = entries[:0]
			r.mu.Lock()
			for len(all) > 0 && len(entries) < copiedAtOnce {
				c := heap.Pop(&all).(candidate)
				if c.in != before.in || c.number != before.number { // it may be found by its key and by a write, and may have moved
					entries = r.appendCandidate(entries, c)
				}
				before = c
			}
			words := r.words.text
			r.mu.Unlock()
			for _, entry := range entries {
				if run, err := decode(entry, words); err == nil && !yield(run) {
					return
				}
			}
		}
	}
}

// appendCandidate appends a copy of the entry of a candidate, unless it has been dropped meanwhile. An entry that has been
// moved to the end of its ring is found there.
func (r *Record) appendCandidate(entries [][]byte, c candidate) [][]byte {
	at := c.at
	if !c.in.has(at) || header(c.in.at(at)).moved() {
		var found bool
		if at, found = entryOf(c.in, c.key, c.number); !found {
			return entries
		}
	}
	return r.appendEntry(entries, c.in, c.in.at(at))
}

// entryOf returns the position of the entry of a key with the number of a run.
func entryOf(in *ring, key, number uint64) (at uint64, found bool) {
	for at := range in.with(term(key)) {
		if h := header(in.at(at)); h.key() == key && h.uint64(atNumber) == number && !h.moved() {
			return at, true
		}
	}
	return 0, false
}

// appendEntry appends a copy of an entry if it counts.
func (r *Record) appendEntry(entries [][]byte, in *ring, b []byte) [][]byte {
	h := header(b)
	if !r.counts(in, h) {
		return entries
	}
	return append(entries, bytes.Clone(b[:h.uint32(atSize)]))
}
