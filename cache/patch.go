// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"strings"
)

// A patch is a body that is written as its difference from the body of a sibling, the base.
// docs/cache-format.md describes its bytes. It is a sequence of operations, each of which adds to
// the body: new bytes, new hexadecimal digits, which take half a byte each, or a copy of bytes
// that stand in the base or earlier in the body.
//
// Measured on the Pods of the benchmark, ten of one ReplicaSet: a patch takes 190 bytes, where S2
// with the base as its dictionary takes 300 and deflate 240. Most of what is new are digits: of
// UIDs, identifiers of containers and digests. A copy is usually found where the base goes on
// after the copy before it, and that place takes no bytes to write.

// The operations. Each begins with a varint: the number n of bytes that it adds, times 4, and
// one of these.
const (
	opBytes  = iota // n bytes follow
	opDigits        // n hexadecimal digits follow, two in a byte
	opNext          // copies n bytes from where the base goes on
	opCopy          // copies n bytes from elsewhere: the distance from there follows, a signed varint
)

const (
	patchMost   = 32 << 10 // bytes of a base, and of a body: positions in both fit into 16 bits
	nextLeast   = 4        // bytes of a copy from where the base goes on
	copyLeast   = 6        // bytes of a copy from elsewhere
	digitsLeast = 8        // digits that are worth an operation of their own
	placesBits  = 12
	skipEvery   = 16 // bytes in which nothing is found, after which one more is skipped each time
	wordSize    = 8
	unhashed    = 8 * (wordSize - copyLeast) // bits of a word that is behind its first copyLeast bytes
)

// patcher writes patches. It finds what to copy by the hash of its first bytes.
type patcher struct {
	window []byte                  // the base, and the body behind it
	base   int                     // length of the base
	places [1 << placesBits]uint16 // by hash: a position in the window
}

// rebase sets the base of the next patches.
func (p *patcher) rebase(base []byte) {
	p.window = append(p.window[:0], base...)
	p.base = len(base)
	clear(p.places[:])
	// A copy of one byte more than the least is found at one of two positions, too.
	step := 2 + len(base)>>placesBits
	for i := 0; i+wordSize <= len(base); i += step {
		p.places[placeOf(word(base[i:]))] = uint16(i)
	}
}

func word(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// placeOf hashes the first copyLeast bytes of a word. The constant is that of S2, for six bytes.
// Source: github.com/klauspost/compress/s2, hash6.
func placeOf(w uint64) uint64 {
	const prime6 = 227718039650203
	return w << unhashed * prime6 >> (64 - placesBits)
}

// append writes a body as a patch behind dst. It reports false, and may stop early, if dst then
// has more than most bytes.
func (p *patcher) append(dst, body []byte, most int) ([]byte, bool) {
	p.window = append(p.window[:p.base], body...)
	w := p.window
	dst = binary.AppendUvarint(dst, uint64(len(body)))
	written := p.base // the patch has the window up to here
	next := 0         // where the base goes on
	for at := p.base; at+wordSize <= len(w) && len(dst) <= most; {
		from, size := p.find(at, next)
		if size == 0 {
			// The longer nothing is found, the fewer places are tried. A copy that begins
			// between two is found at the next, and grows back to its beginning.
			skip := 1 + (at-written)/skipEvery
			at += skip
			next += skip
			continue
		}
		back := 0
		for at-back > written && from-back > 0 && from+size < at-back && w[at-back-1] == w[from-back-1] {
			back++ // and what is copied is there before the copy
		}
		at, from, next, size = at-back, from-back, next-back, size+back
		dst = appendNew(dst, w[written:at])
		dst = appendCopy(dst, from, next, size)
		at += size
		next = p.after(from, next, size)
		written = at
	}
	if len(dst) <= most {
		dst = appendNew(dst, w[written:])
	}
	return dst, len(dst) <= most
}

// find returns where in the window there is what begins at a position, and how much of it; 0:
// nowhere.
func (p *patcher) find(at, next int) (from, size int) {
	w := p.window
	here := word(w[at:])
	if next+wordSize <= p.base && uint32(here) == binary.LittleEndian.Uint32(w[next:]) {
		return next, common(w[next:p.base], w[at:])
	}
	place := &p.places[placeOf(here)]
	from = int(*place)
	if from+wordSize > at {
		from = 0 // of an earlier body, longer than this one
	}
	// Most places that are tried have something else, which one comparison shows. Calling common for each of them, with what it found, was 4 % of a first list.
	if word(w[from:])<<unhashed == here<<unhashed {
		if size = common(w[from:at], w[at:]); size >= copyLeast {
			return from, size
		}
	}
	if from == 0 || from >= p.base {
		*place = uint16(at)
	}
	return 0, 0
}

// after returns where the base goes on after a copy: behind it, or, if the copy is of the body
// itself, as far on as the body.
func (p *patcher) after(from, next, size int) int {
	if from < p.base {
		return from + size
	}
	return next + size
}

// common is how many bytes two texts begin with in common.
func common(a, b []byte) int {
	most := min(len(a), len(b))
	n := 0
	for ; n+wordSize <= most; n += wordSize {
		if x := word(a[n:]) ^ word(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for n < most && a[n] == b[n] {
		n++
	}
	return n
}

func appendOp(dst []byte, op, n int) []byte {
	return binary.AppendUvarint(dst, uint64(n)<<2|uint64(op))
}

func appendCopy(dst []byte, from, next, size int) []byte {
	if from == next {
		return appendOp(dst, opNext, size)
	}
	return binary.AppendVarint(appendOp(dst, opCopy, size), int64(from-next))
}

// appendNew writes bytes that are new, and runs of digits among them as digits.
func appendNew(dst, text []byte) []byte {
	from := 0
	for at := 0; at < len(text); {
		run := digitsAt(text[at:])
		if run < digitsLeast {
			at += run + 1 // what follows the run is no digit
			continue
		}
		run &^= 1
		dst = appendBytes(dst, text[from:at])
		dst = appendOp(dst, opDigits, run)
		for i := at; i < at+run; i += 2 {
			dst = append(dst, byte(digit(text[i])<<4|digit(text[i+1])))
		}
		at += run
		from = at
	}
	return appendBytes(dst, text[from:])
}

func appendBytes(dst, text []byte) []byte {
	if len(text) == 0 {
		return dst
	}
	return append(appendOp(dst, opBytes, len(text)), text...)
}

const digits = "0123456789abcdef"

// digitValues has the value of each hexadecimal digit in lower case, and -1 for other bytes.
var digitValues = func() (values [256]int8) {
	for c := range values {
		values[c] = int8(strings.IndexByte(digits, byte(c)))
	}
	return values
}()

func digit(c byte) int { return int(digitValues[c]) }

// digitsAt is how many digits a text begins with.
func digitsAt(text []byte) (n int) {
	for n < len(text) && digit(text[n]) >= 0 {
		n++
	}
	return n
}

var errPatch = errors.New("the patch is damaged")

// patchedSize returns the size of the body that a patch makes.
func patchedSize(patch []byte) (int, error) {
	size, n := binary.Uvarint(patch)
	if n <= 0 || size > patchMost {
		return 0, errPatch
	}
	return int(size), nil
}

// applyPatch appends the body that a patch makes to its base.
func applyPatch(base, patch []byte) (window []byte, err error) {
	size, err := patchedSize(patch)
	if err != nil {
		return nil, err
	}
	_, n := binary.Uvarint(patch)
	a := patching{window: base, base: len(base), end: len(base) + size, rest: patch[n:]}
	for len(a.rest) > 0 {
		if !a.step() {
			return nil, errPatch
		}
	}
	if len(a.window) != a.end {
		return nil, errPatch
	}
	return a.window, nil
}

// patching is a body that is being put together.
type patching struct {
	window []byte // the base, and the body behind it
	base   int    // length of the base
	end    int    // length of the window when the body is whole
	next   int    // where the base goes on
	rest   []byte // of the patch
}

// step takes the next operation, and reports whether it is right.
func (a *patching) step() bool {
	head, n := binary.Uvarint(a.rest)
	if n <= 0 || head>>2 > uint64(a.end-len(a.window)) {
		return false
	}
	a.rest = a.rest[n:]
	size := int(head >> 2)
	switch head & 3 {
	case opBytes:
		return a.bytes(size)
	case opDigits:
		return a.digits(size)
	case opNext:
		return a.copy(a.next, size)
	default:
		distance, n := binary.Varint(a.rest)
		if n <= 0 || distance > 2*patchMost || distance < -2*patchMost {
			return false
		}
		a.rest = a.rest[n:]
		return a.copy(a.next+int(distance), size)
	}
}

func (a *patching) bytes(size int) bool {
	if size > len(a.rest) {
		return false
	}
	a.window = append(a.window, a.rest[:size]...)
	a.rest = a.rest[size:]
	a.next += size
	return true
}

func (a *patching) digits(size int) bool {
	if size%2 != 0 || size/2 > len(a.rest) {
		return false
	}
	for _, pair := range a.rest[:size/2] {
		a.window = append(a.window, digits[pair>>4], digits[pair&15])
	}
	a.rest = a.rest[size/2:]
	a.next += size
	return true
}

func (a *patching) copy(from, size int) bool {
	if from < 0 || from+size > len(a.window) {
		return false
	}
	a.window = append(a.window, a.window[from:from+size]...)
	if from < a.base {
		a.next = from + size
	} else {
		a.next += size
	}
	return true
}
