// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"cmp"
	"encoding/binary"
	"iter"
	"math"
	"math/bits"
	"slices"
)

// ring keeps encoded entries in order, in segments of equal size. When all segments are in use, the oldest one is
// emptied as a whole. A position counts the bytes since the beginning, so it is never used twice, and no entry spans
// two segments. The memory of a segment is allocated when it is first used, and has no pointers.
//
// Where stays is set, a segment is not emptied as a whole: see empty.
//
// An entry can be found by its terms, which are hashes. Each entry has one posting for each of its terms: 12 bytes
// with the term, the distance back to the posting before with a term of the same bucket, and the distance back to the
// beginning of the entry. heads has the newest posting of each bucket. A distance that leads before the oldest
// segment ends the search, so nothing has to be removed when a segment is emptied.
type ring struct {
	segments [][]byte
	about    []about
	size     int  // of a segment, a power of two
	shift    uint // its logarithm
	stays    bool // entries that were counted in lately stay
	staying  []staying
	oldest   uint64
	next     uint64 // where the next entry goes
	heads    []uint64
}

// about says what is in a segment.
type about struct {
	used    int
	entries int
	began   int64 // the Last of the entry with which it began
	last    int64 // the newest Last of its entries
}

// Sizes of a posting and of the number of bytes at the beginning of an entry.
const (
	postingSize = 12
	sizeOfSize  = 4
)

// Segments are as large as a run with hundreds of writes needs them, and so many that few runs are dropped at a time.
const (
	leastSegment = 16 << 10
	mostSegments = 64
)

// newRing returns a ring of about bytes, with an index of about index bytes, both as upper bounds.
func newRing(bytes, index int) *ring {
	shift := uint(bits.Len(uint(bytes/min(max(bytes/leastSegment, 4), mostSegments))) - 1)
	n := bytes >> shift
	buckets := 1 << (bits.Len(uint(max(index/8, 16))) - 1)
	return &ring{segments: make([][]byte, n), about: make([]about, n), size: 1 << shift, shift: shift, heads: make([]uint64, buckets)}
}

// bytes returns how much memory the ring has allocated.
func (r *ring) bytes() int {
	n := 8 * len(r.heads)
	for _, s := range r.segments {
		n += len(s)
	}
	return n
}

// most is the largest entry that the ring takes.
func (r *ring) most() int { return min(r.size/2, 64<<10) }

// half returns how many bytes half of the ring has.
func (r *ring) half() uint64 { return uint64(len(r.segments)) << r.shift / 2 }

func (r *ring) slot(position uint64) int { return int(position >> r.shift % uint64(len(r.segments))) }

// offset returns where in its segment a position is.
func (r *ring) offset(position uint64) int { return int(position & uint64(r.size-1)) }

// at returns the bytes from a position to the end of what its segment has.
func (r *ring) at(position uint64) []byte {
	i := r.slot(position)
	return r.segments[i][r.offset(position):r.about[i].used]
}

// has reports whether a position has not been dropped.
func (r *ring) has(position uint64) bool { return position >= r.oldest && position < r.next }

// add appends an entry, and returns its position. dropping is called for a segment before it is emptied.
func (r *ring) add(entry []byte, dropping func(*ring, about)) uint64 {
	if left := r.size - r.offset(r.next); left < len(entry) {
		r.next += uint64(left)
	}
	i := r.slot(r.next)
	if r.offset(r.next) == 0 {
		if r.segments[i] == nil {
			r.segments[i] = make([]byte, r.size)
		}
		if r.next >= uint64(len(r.segments))<<r.shift {
			r.empty(i, min(r.size/2, r.size-len(entry)), dropping)
		}
		r.about[i].began = header(entry).last()
	}
	return r.append(i, entry)
}

// append appends an entry to a segment that has room for it.
func (r *ring) append(i int, entry []byte) (position uint64) {
	position = r.next
	a := &r.about[i]
	into := r.segments[i][r.offset(position):]
	into = into[:copy(into, entry)] // one that stays may lie in the same place: only the copy is whole from here on
	h := header(into)
	r.next += uint64(len(into))
	a.used += len(into)
	a.entries++
	a.last = max(a.last, h.last())
	r.post(into, atPosting, position)
	for n := range h.postings() - 1 {
		r.post(into, headerSize+n*postingSize, position)
	}
	return position
}

// staying is an entry that stays when its segment is emptied.
type staying struct {
	offset, size int
	last         int64
}

// empty empties the oldest segment, which is the next one. If entries stay, those in which a run was counted since the
// newer half of the ring was begun come first in the segment again, the newest of them if they are too many for a room.
// So thousands of keys that run again and again, and fit into the ring, are not copied at each turn of theirs, which was
// a third of what it took to record a run that changed nothing.
func (r *ring) empty(i, room int, dropping func(*ring, about)) {
	r.staying = r.staying[:0]
	if r.stays {
		r.chooseStaying(room)
	}
	r.oldest = r.next - uint64(len(r.segments)-1)<<r.shift
	dropping(r, r.about[i])
	r.about[i] = about{}
	for _, s := range r.staying {
		r.append(i, r.segments[i][s.offset:s.offset+s.size]) // which is at its place already, or behind it
	}
}

// chooseStaying chooses the entries of the oldest segment that stay.
func (r *ring) chooseStaying(room int) {
	since := r.about[r.slot(r.next-r.half())].began
	size := 0
	for at := range r.between(r.oldest, r.oldest+uint64(r.size)) {
		h := header(r.at(at))
		// The entry of a key at the end is the one in which its next run may be counted.
		if newest, _ := r.newest(h.key()); newest == at && h.last() >= since {
			one := staying{r.offset(at), int(h.uint32(atSize)), h.last()}
			r.staying = append(r.staying, one)
			size += one.size
		}
	}
	if size <= room {
		return
	}
	slices.SortFunc(r.staying, func(a, b staying) int { return cmp.Compare(b.last, a.last) })
	n := len(r.staying)
	for ; size > room; n-- {
		size -= r.staying[n-1].size
	}
	r.staying = r.staying[:n]
	slices.SortFunc(r.staying, func(a, b staying) int { return cmp.Compare(a.offset, b.offset) })
}

// post puts the posting at an offset of an entry into the index.
func (r *ring) post(entry []byte, at int, position uint64) {
	head := r.head(binary.LittleEndian.Uint32(entry[at:]))
	here := position + uint64(at)
	var back uint64
	if *head != 0 {
		if back = here - (*head - 1); back > math.MaxUint32 {
			back = 0
		}
	}
	binary.LittleEndian.PutUint32(entry[at+4:], uint32(back))
	binary.LittleEndian.PutUint32(entry[at+8:], uint32(at))
	*head = here + 1
}

func (r *ring) head(term uint32) *uint64 { return &r.heads[term&uint32(len(r.heads)-1)] }

// first returns the position of the newest posting of a term.
func (r *ring) first(term uint32) (posting uint64, found bool) { return r.search(term, *r.head(term)) }

// after returns the position of the posting of the same term before a posting.
func (r *ring) after(posting uint64) (before uint64, found bool) {
	b := r.at(posting)
	back := uint64(binary.LittleEndian.Uint32(b[4:]))
	if back == 0 {
		return 0, false
	}
	return r.search(binary.LittleEndian.Uint32(b), posting+1-back)
}

// search returns the first posting of a term from a link on. A link is a position and one, or 0 at the end.
func (r *ring) search(term uint32, link uint64) (posting uint64, found bool) {
	for link != 0 && r.has(link-1) {
		b := r.at(link - 1)
		if binary.LittleEndian.Uint32(b) == term {
			return link - 1, true
		}
		back := uint64(binary.LittleEndian.Uint32(b[4:]))
		if back == 0 {
			break
		}
		link -= back
	}
	return 0, false
}

// entry returns the position of the entry of a posting.
func (r *ring) entry(posting uint64) uint64 {
	return posting - uint64(binary.LittleEndian.Uint32(r.at(posting)[8:]))
}

// newest returns the newest entry of a key.
func (r *ring) newest(key uint64) (at uint64, found bool) {
	for at, found = r.first(term(key)); found; at, found = r.after(at) {
		if entry := r.entry(at); header(r.at(entry)).key() == key {
			return entry, true
		}
	}
	return 0, false
}

// with yields the positions of the entries that have a term, the newest first. An entry may come twice in a row.
func (r *ring) with(term uint32) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for at, found := r.first(term); found; at, found = r.after(at) {
			if !yield(r.entry(at)) {
				return
			}
		}
	}
}

// between yields the positions of the entries that begin in a range of positions, the oldest first. The range begins
// at an entry or a segment.
func (r *ring) between(from, to uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for position := max(from, r.oldest); position < min(to, r.next); {
			offset := r.offset(position)
			if offset >= r.about[r.slot(position)].used {
				position += uint64(r.size - offset)
				continue
			}
			if !yield(position) {
				return
			}
			position += uint64(binary.LittleEndian.Uint32(r.at(position)))
		}
	}
}

// segmentOf returns what is known of the segment of a position.
func (r *ring) segmentOf(position uint64) *about { return &r.about[r.slot(position)] }
