// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"encoding/binary"
	"errors"
	"os"
)

// Decode decodes an entry with some words.
func Decode(entry []byte, words []string) (Run, error) { return decode(entry, words) }

// Entries returns the encoded entries of a record, and their words.
func (r *Record) Entries() (entries [][]byte, words []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range [...]*ring{r.kept, r.idle} {
		for at := range in.between(0, in.next) {
			entries = r.appendEntry(entries, in, in.at(at))
		}
	}
	return entries, r.words.text
}

// Write writes what is new, as a File does every WriteEvery, and returns the error.
func (f *File) Write() error {
	f.try(false)
	if f.failing {
		return errors.New("the write failed")
	}
	return nil
}

// Crash ends a File as the end of its process does: nothing is written any more, and the lock is released.
func (f *File) Crash() { _ = errors.Join(f.now.file.Close(), f.lock.Close()) }

// Replace has a File write into another open file, and returns the one before.
func (f *File) Replace(file *os.File) (before *os.File) {
	before, f.now.file = f.now.file, file
	return before
}

// Load reads the content of a file into a record, and returns the offset up to which it is in order.
func (r *Record) Load(content []byte) (end int) {
	s := segmentFile{}
	if len(content) >= fileHeader {
		copy(s.salt[:], content[len(fileMagic):])
	}
	l := loader{record: r, at: map[uint64]uint64{}}
	_, end = l.file(&s, content)
	return end
}

// Sealed returns a file with one block of a body.
func Sealed(body []byte) []byte {
	s := segmentFile{}
	header := make([]byte, fileHeader+blockHead, fileHeader+blockHead+len(body))
	copy(header, fileMagic)
	binary.LittleEndian.PutUint32(header[fileHeader:], uint32(len(body)))
	binary.LittleEndian.PutUint32(header[fileHeader+4:], s.sum(int64(fileHeader), body))
	return append(header, body...)
}

// Items returns the numbers of the items of a file.
func Items() map[string]int {
	return map[string]int{"numbers": itemNumbers, "word": itemWord, "run": itemRun, "change": itemChange}
}

// Outcomes returns the outcomes in the order of their numbers.
func Outcomes() []Outcome { all := outcomes(); return all[:] }
