// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/klauspost/compress/s2"
)

// A packed body begins with a checksum of the body as it was. Dictionaries and bases are shared:
// without a checksum, damage to one of them could show as a plausible object.

const checksumSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendChecksum(dst, body []byte) []byte {
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(body, castagnoli))
}

var (
	errTooShort = errors.New("the body is shorter than its checksum")
	errChecksum = errors.New("the body does not have its checksum")
)

// unpack returns the body as it was before it was packed: in memory, which it reuses and
// replaces if it is too small, or, if it was not packed, where the entry keeps it, to be read only.
func (e *entry) unpack(memory *[]byte) ([]byte, error) {
	packed := bytesOf(e.body())
	if e.packing.whole() {
		return packed, nil
	}
	if len(packed) < checksumSize {
		return nil, errTooShort
	}
	sum, packed := binary.LittleEndian.Uint32(packed), packed[checksumSize:]
	var body []byte
	var err error
	if e.packing == patched {
		body, err = e.form.base.apply(memory, packed)
	} else {
		body, err = e.form.decompress(memory, packed)
	}
	if err != nil {
		return nil, err
	}
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, errChecksum
	}
	return body, nil
}

// decompress returns what a block of S2 has.
func (f *form) decompress(memory *[]byte, block []byte) ([]byte, error) {
	size, err := s2.DecodedLen(block)
	if err != nil {
		return nil, err
	}
	dst := enough(memory, size)
	if f.dict != nil {
		return f.dict.Decode(dst, block)
	}
	return s2.Decode(dst, block)
}

// apply returns the body that a patch makes of this one. Both are in memory, one behind the
// other.
func (e *entry) apply(memory *[]byte, patch []byte) ([]byte, error) {
	size, err := patchedSize(patch)
	if err != nil {
		return nil, err
	}
	from := e.rawSize()
	window := enough(memory, from+size)
	base, err := e.unpack(&window)
	if err != nil {
		return nil, err
	}
	if e.packing.whole() {
		base = append(window[:0], base...)
	}
	window, err = applyPatch(base, patch)
	if err != nil {
		return nil, err
	}
	return window[from:], nil
}

// enough returns memory of at least a size.
func enough(memory *[]byte, size int) []byte {
	if cap(*memory) < size {
		*memory = make([]byte, size+size/4)
	}
	return (*memory)[:cap(*memory)]
}

// rawSize is how many bytes the body has unpacked.
func (e *entry) rawSize() int {
	body := bytesOf(e.body())
	if e.packing.whole() || len(body) < checksumSize {
		return len(body)
	}
	read := s2.DecodedLen
	if e.packing == patched {
		read = patchedSize
	}
	size, err := read(body[checksumSize:])
	if err != nil {
		return len(body)
	}
	return size
}
