// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// A journal is a file of bbolt, which maps it into memory and believes what it reads: a
// damaged page makes it panic, run in circles, or read behind the end of the file, some
// of it in goroutines of its own, where nobody can catch it. So the pages are read here
// before bbolt sees them, with plain reads and every bound checked. What this accepts,
// bbolt reads without harm.
//
// Source of the format: go.etcd.io/bbolt v1.4.3, internal/common.

const (
	pageHeader    = 16
	pageElement   = 16
	bucketHeader  = 16
	metaSize      = 64
	metaMagic     = 0xED0CDAED
	metaVersion   = 2
	branchFlag    = 0x01
	leafFlag      = 0x02
	freelistFlag  = 0x10
	bucketEntry   = 0x01
	noFreelist    = ^uint64(0)
	manyFree      = 0xFFFF // this many, and the count is the first element
	minPage       = 1 << 10
	maxPage       = 1 << 16
	deepest       = 40       // pages from the root to a leaf; far more than any file has
	largestExtent = 64 << 20 // bytes of one page with its overflow; events are far smaller
)

// structureError is damage, in distinction to a file that could not be read.
type structureError struct{ text string }

func (e *structureError) Error() string { return e.text }

func damaged(format string, args ...any) error {
	return &structureError{fmt.Sprintf(format, args...)}
}

// visitor is told of everything that is in the file, in order. What it gets is valid
// during the call. An error ends the walk.
type visitor func(buckets []string, key, value []byte, isBucket bool) error

// pageFile is a file of bbolt that is being looked at.
type pageFile struct {
	r        io.ReaderAt
	pageSize int
	high     uint64 // pages from here on are not in use
	used     []uint64
	buffers  [][]byte
	visit    visitor

	root, freelist uint64
	// spareHeader says that one of the two headers cannot be read. The last write may have
	// been cut short, and what it wrote is not there.
	spareHeader bool
	// leaked is how many pages are neither in use nor free. Nothing is lost by them.
	leaked int
}

// walkPages reads the whole file. Errors that are damage are structureErrors.
func walkPages(r io.ReaderAt, size int64, visit visitor) (*pageFile, error) {
	p := &pageFile{r: r, visit: visit}
	if err := p.header(size); err != nil {
		return p, err
	}
	p.used = make([]uint64, p.high/64+1)
	p.mark(0)
	p.mark(1)
	if err := p.tree(p.root, 0, nil, bounds{}, true); err != nil {
		return p, err
	}
	return p, p.free()
}

func (p *pageFile) read(b []byte, at int64) error {
	n, err := p.r.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return damaged("it ends in the middle of a page, at byte %d", at+int64(n))
	}
	return fmt.Errorf("reading it at byte %d: %w", at, err)
}

// header finds the newer one of the two headers, the first pages of the file.
func (p *pageFile) header(size int64) error {
	var first [pageHeader + metaSize]byte
	if size < 2*minPage {
		return damaged("it is %d bytes long, and less than its headers", size)
	}
	if err := p.read(first[:], 0); err != nil {
		return err
	}
	a, errA := parseMeta(first[pageHeader:])
	b, errB := p.secondHeader(size, a, errA)
	if errA != nil && errB != nil {
		return errA
	}
	chosen := a
	if errA != nil || errB == nil && b.txid > a.txid {
		chosen = b
	}
	p.spareHeader = errA != nil || errB != nil
	p.pageSize, p.high, p.root, p.freelist = int(chosen.pageSize), chosen.high, chosen.root, chosen.freelist
	switch {
	case p.pageSize < minPage || p.pageSize > maxPage || p.pageSize&(p.pageSize-1) != 0:
		return damaged("its pages are said to be %d bytes", p.pageSize)
	case p.high < 3 || p.high > uint64(size)/uint64(p.pageSize):
		return damaged("it is %d bytes long, and should have %d pages of %d bytes", size, p.high, p.pageSize)
	}
	return nil
}

// neverCommitted reports whether a file is what bbolt makes of a new one, or the beginning of
// that, and nothing was ever committed to it: the two headers begin with 0 and 1, and the
// first commit counts the first one up to 2.
// Source: go.etcd.io/bbolt, DB.init and Tx.writeMeta.
func neverCommitted(r io.ReaderAt) bool {
	var first [pageHeader + metaSize]byte
	if _, err := r.ReadAt(first[:], 0); err != nil {
		return false
	}
	m, err := parseMeta(first[pageHeader:])
	return err == nil && m.txid == 0
}

// secondHeader finds the second header. Where it is depends on the size of pages, which
// the first one says; if that cannot be read, every size is tried, as bbolt does.
func (p *pageFile) secondHeader(size int64, first meta, firstErr error) (m meta, err error) {
	err = damaged("it has no second header")
	for at := int64(minPage); at <= maxPage && at+pageHeader+metaSize <= size; at <<= 1 {
		if firstErr == nil && at != int64(first.pageSize) {
			continue
		}
		var b [pageHeader + metaSize]byte
		if err := p.read(b[:], at); err != nil {
			return meta{}, err
		}
		if m, err = parseMeta(b[pageHeader:]); err != nil {
			continue
		}
		if int64(m.pageSize) != at {
			return meta{}, damaged("its second header is in the wrong place")
		}
		return m, nil
	}
	return meta{}, err
}

type meta struct {
	pageSize             uint32
	root, freelist, high uint64
	txid                 uint64
}

func parseMeta(b []byte) (meta, error) {
	order := binary.NativeEndian
	sum := fnv.New64a()
	sum.Write(b[:metaSize-8])
	switch {
	case order.Uint32(b) != metaMagic:
		return meta{}, damaged("its header is not that of a bbolt file")
	case order.Uint64(b[metaSize-8:]) != sum.Sum64():
		return meta{}, damaged("the checksum of its header is of something else")
	case order.Uint32(b[4:]) > metaVersion:
		return meta{}, fmt.Errorf("%w: bbolt's own format is %d, this reads %d", ErrNewer, order.Uint32(b[4:]), metaVersion)
	case order.Uint32(b[4:]) != metaVersion:
		return meta{}, damaged("its header is of version %d of bbolt's format", order.Uint32(b[4:]))
	}
	return meta{
		pageSize: order.Uint32(b[8:]), root: order.Uint64(b[16:]),
		freelist: order.Uint64(b[32:]), high: order.Uint64(b[40:]), txid: order.Uint64(b[48:]),
	}, nil
}

// mark notes that a page is in use, and reports whether it was not.
func (p *pageFile) mark(id uint64) bool {
	bit := uint64(1) << (id % 64)
	if p.used[id/64]&bit != 0 {
		return false
	}
	p.used[id/64] |= bit
	return true
}

// extent reads a page and its overflow into the buffer of a depth, and marks them.
func (p *pageFile) extent(id uint64, depth int) (page []byte, flags, count uint16, err error) {
	if id < 2 || id >= p.high {
		return nil, 0, 0, damaged("page %d: there is no such page", id)
	}
	for len(p.buffers) <= depth {
		p.buffers = append(p.buffers, make([]byte, p.pageSize))
	}
	b := p.buffers[depth]
	at := int64(id) * int64(p.pageSize)
	if err := p.read(b[:p.pageSize], at); err != nil {
		return nil, 0, 0, err
	}
	order := binary.NativeEndian
	if got := order.Uint64(b); got != id {
		return nil, 0, 0, damaged("page %d: it says that it is page %d", id, got)
	}
	overflow := uint64(order.Uint32(b[12:]))
	if overflow >= p.high-id || (overflow+1)*uint64(p.pageSize) > largestExtent {
		return nil, 0, 0, damaged("page %d: it is said to go on for %d pages", id, overflow)
	}
	for i := range overflow + 1 {
		if !p.mark(id + i) {
			return nil, 0, 0, damaged("page %d: it is in use twice", id+i)
		}
	}
	n := int(overflow+1) * p.pageSize
	if n > len(b) {
		b = append(b, make([]byte, n-len(b))...)
		p.buffers[depth] = b
		if err := p.read(b[p.pageSize:n], at+int64(p.pageSize)); err != nil {
			return nil, 0, 0, err
		}
	} else if overflow > 0 {
		if err := p.read(b[p.pageSize:n], at+int64(p.pageSize)); err != nil {
			return nil, 0, 0, err
		}
	}
	return b[:n], order.Uint16(b[8:]), order.Uint16(b[10:]), nil
}

// bounds are what keys of a page lie between: from is the first that is allowed, to the
// first that is not; nil for none.
type bounds struct{ from, to []byte }

func (b bounds) hold(key []byte) bool {
	return bytes.Compare(key, b.from) >= 0 && (b.to == nil || bytes.Compare(key, b.to) < 0)
}

// tree walks the pages below one. A root may be empty, other pages may not.
func (p *pageFile) tree(id uint64, depth int, buckets []string, in bounds, isRoot bool) error {
	if depth > deepest {
		return damaged("page %d: it lies too deep", id)
	}
	page, flags, count, err := p.extent(id, depth)
	if err != nil {
		return err
	}
	if count == 0 && (!isRoot || flags != leafFlag) {
		return damaged("page %d: it is empty", id)
	}
	switch flags {
	case branchFlag:
		return p.branch(page, int(count), depth, buckets, in)
	case leafFlag:
		return p.leaf(page, int(count), depth, buckets, in, true)
	default:
		return damaged("page %d: its kind is %#x", id, flags)
	}
}

func (p *pageFile) branch(page []byte, count, depth int, buckets []string, in bounds) error {
	order := binary.NativeEndian
	id := order.Uint64(page)
	next := pageHeader + count*pageElement
	key := func(i int) ([]byte, error) {
		at := pageHeader + i*pageElement
		if at+pageElement > len(page) {
			return nil, damaged("page %d: it has no room for its %d elements", id, count)
		}
		start, size := at+int(order.Uint32(page[at:])), int(order.Uint32(page[at+4:]))
		if start != next || size <= 0 || size > len(page)-start {
			return nil, damaged("page %d: element %d lies in the wrong place", id, i)
		}
		next += size
		return page[start:next], nil
	}
	current, err := key(0)
	if err != nil {
		return err
	}
	for i := range count {
		if !in.hold(current) {
			return damaged("page %d: key %d is out of order", id, i)
		}
		child := bounds{from: current, to: in.to}
		var following []byte
		if i+1 < count {
			if following, err = key(i + 1); err != nil {
				return err
			}
			if bytes.Compare(following, current) <= 0 {
				return damaged("page %d: key %d is out of order", id, i+1)
			}
			child.to = following
		}
		at := pageHeader + i*pageElement
		if err := p.tree(order.Uint64(page[at+8:]), depth+1, buckets, child, false); err != nil {
			return err
		}
		current = following
	}
	return nil
}

func (p *pageFile) leaf(page []byte, count, depth int, buckets []string, in bounds, mayNest bool) error {
	order := binary.NativeEndian
	id := order.Uint64(page)
	next := pageHeader + count*pageElement
	if next > len(page) {
		return damaged("page %d: it has no room for its %d elements", id, count)
	}
	var before []byte
	for i := range count {
		at := pageHeader + i*pageElement
		flags, start := order.Uint32(page[at:]), at+int(order.Uint32(page[at+4:]))
		keySize, valueSize := int(order.Uint32(page[at+8:])), int(order.Uint32(page[at+12:]))
		if start != next || keySize <= 0 || keySize > len(page)-start || valueSize < 0 || valueSize > len(page)-start-keySize || flags > bucketEntry {
			return damaged("page %d: element %d lies in the wrong place", id, i)
		}
		next = start + keySize + valueSize
		key, value := page[start:start+keySize], page[start+keySize:next]
		if i > 0 && bytes.Compare(key, before) <= 0 || !in.hold(key) {
			return damaged("page %d: key %d is out of order", id, i)
		}
		before = key
		isBucket := flags == bucketEntry
		if err := p.visit(buckets, key, value, isBucket); err != nil {
			return err
		}
		if !isBucket {
			continue
		}
		if !mayNest {
			return damaged("page %d: key %d is a bucket within an inline one", id, i)
		}
		if err := p.bucket(value, depth, append(buckets, string(key))); err != nil {
			return err
		}
	}
	return nil
}

// bucket walks a bucket: small ones lie within the value of their key, as a page.
func (p *pageFile) bucket(value []byte, depth int, buckets []string) error {
	if len(value) < bucketHeader {
		return damaged("bucket %q: its record is %d bytes", buckets, len(value))
	}
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return p.tree(root, depth+1, buckets, bounds{}, true)
	}
	page := value[bucketHeader:]
	if len(page) < pageHeader || binary.NativeEndian.Uint16(page[8:]) != leafFlag || binary.NativeEndian.Uint32(page[12:]) != 0 {
		return damaged("bucket %q: its page is not one", buckets)
	}
	return p.leaf(page, int(binary.NativeEndian.Uint16(page[10:])), depth, buckets, bounds{}, false)
}

// free reads the list of free pages. One that is in use would be written over.
func (p *pageFile) free() error {
	total := uint64(0)
	if p.freelist != noFreelist {
		page, flags, short, err := p.extent(p.freelist, 0)
		if err != nil {
			return err
		}
		if flags != freelistFlag {
			return damaged("page %d: its kind is %#x, and should be a list of free pages", p.freelist, flags)
		}
		ids, count := page[pageHeader:], uint64(short)
		if short == manyFree && len(ids) >= 8 {
			ids, count = ids[8:], binary.NativeEndian.Uint64(ids)
		}
		if count > uint64(len(ids)/8) {
			return damaged("page %d: it has no room for its %d elements", p.freelist, count)
		}
		for i := range count {
			id := binary.NativeEndian.Uint64(ids[i*8:])
			if id < 2 || id >= p.high || !p.mark(id) {
				return damaged("page %d: it is said to be free, and is not", id)
			}
		}
	}
	for id := range p.high {
		if p.used[id/64]&(1<<(id%64)) != 0 {
			total++
		}
	}
	if p.freelist != noFreelist {
		p.leaked = int(p.high - total)
	}
	return nil
}
