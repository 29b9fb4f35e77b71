// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"time"

	"github.com/setpoint-io/setpoint/internal/ownfile"
)

// A file begins with fileMagic and random bytes. Blocks follow: the length of the body and a checksum, 4 bytes each,
// little endian, and the body. The checksum, CRC-32C, is that of the random bytes, the offset of the block as 8 bytes, and
// the body. So the text of an error cannot pass for a block, and neither can what is left of an earlier one.
const (
	fileMagic  = "setpoint runs 1\n"
	saltSize   = 8
	fileHeader = len(fileMagic) + saltSize
	blockHead  = 8

	fullBlock = 256 << 10 // a block that is as large is written
	mostBlock = 1 << 20   // a larger one is damaged
)

// Items of a body. Each begins with one of these numbers.
const (
	itemNumbers = 1 // a number: numbers of runs up to this one may be in use
	itemWord    = 2 // a text: the next word of this file
	itemRun     = 3 // a run, with its length
	itemChange  = 4 // what has changed of a run that was written before
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// segmentFile is an open file of a record.
type segmentFile struct {
	file *os.File
	salt [saltSize]byte
	size int64 // of what is in order
}

// openSegment opens a file, and makes it if that is wanted.
func openSegment(path string, create bool) (*segmentFile, error) {
	file, err := ownfile.Open(path, os.O_RDWR)
	if create && errors.Is(err, fs.ErrNotExist) {
		file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		return nil, err
	}
	s := &segmentFile{file: file}
	if err := s.begin(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return s, nil
}

// begin reads the header of a file, or writes it if the file has none yet.
func (s *segmentFile) begin() error {
	header := make([]byte, fileHeader)
	n, _ := s.file.ReadAt(header, 0) // a file that cannot be read cannot be written either
	switch {
	case n == fileHeader && string(header[:len(fileMagic)]) == fileMagic:
		copy(s.salt[:], header[len(fileMagic):])
	case n < fileHeader && bytes.HasPrefix([]byte(fileMagic), header[:min(n, len(fileMagic))]): // a crash may have cut it
		_, _ = rand.Read(s.salt[:]) // it never fails
		if _, err := s.file.WriteAt(append([]byte(fileMagic), s.salt[:]...), 0); err != nil {
			return err
		}
	case bytes.HasPrefix(header, []byte("setpoint runs ")):
		return errors.New("it is of a newer format than this program reads; name another file")
	default:
		return fmt.Errorf("%s is not a file of runs; name another one", s.file.Name())
	}
	s.size = int64(fileHeader)
	return nil
}

// sum returns the checksum of a block at an offset.
func (s *segmentFile) sum(offset int64, body []byte) uint32 {
	var head [saltSize + 8]byte
	copy(head[:], s.salt[:])
	binary.LittleEndian.PutUint64(head[saltSize:], uint64(offset))
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, body)
}

// write writes a block after the last one, and returns the size after it. The first blockHead bytes of the block are free.
func (s *segmentFile) write(block []byte) (size int64, err error) {
	binary.LittleEndian.PutUint32(block, uint32(len(block)-blockHead))
	binary.LittleEndian.PutUint32(block[4:], s.sum(s.size, block[blockHead:]))
	if _, err := s.file.WriteAt(block, s.size); err != nil {
		return s.size, err
	}
	return s.size + int64(len(block)), nil
}

// blocks yields the bodies of the blocks of a content, and returns the offset after the last one that is in order.
func (s *segmentFile) blocks(content []byte, each func(body []byte) bool) (end int) {
	at := min(fileHeader, len(content))
	for len(content)-at >= blockHead {
		size := binary.LittleEndian.Uint32(content[at:])
		if size == 0 || size > mostBlock || int(size) > len(content)-at-blockHead {
			break
		}
		body := content[at+blockHead : at+blockHead+int(size)]
		if binary.LittleEndian.Uint32(content[at+4:]) != s.sum(int64(at), body) || !each(body) {
			break
		}
		at += blockHead + int(size)
	}
	return at
}

// fileWriter makes blocks.
type fileWriter struct {
	words     *words
	committed int // words that are in the file
	encoder
	whole []byte
}

// begin begins a block.
func (w *fileWriter) begin() {
	w.encoder.words = w.words
	w.b = w.b[:0]
}

// run adds a run.
func (w *fileWriter) run(run *Run) {
	w.uint(itemRun)
	before := len(w.b)
	w.uint(run.Number)
	w.b = append(w.b, indexOf(run.Outcome))
	w.time(run.Began)
	w.changing(run)
	w.payloadOf(run, mostBlock)
	body := len(w.b) - before
	w.b = append(w.b, make([]byte, binary.PutUvarint(make([]byte, binary.MaxVarintLen64), uint64(body)))...)
	size := len(w.b) - before - body
	copy(w.b[before+size:], w.b[before:before+body])
	binary.PutUvarint(w.b[before:], uint64(body))
}

// changing writes what may change of a run.
func (w *fileWriter) changing(run *Run) {
	w.uint(uint64(run.Runs))
	w.time(run.Last)
	if run.NextLook != nil {
		w.time(*run.NextLook)
	} else {
		w.uint(0)
	}
	w.version(run.LastVersion)
	w.uint(uint64(run.Settled.Microseconds()))
}

func (e *encoder) time(at time.Time) { e.uint(uint64(at.UnixNano())) }

// change adds what has changed of a run that is in the files already.
func (w *fileWriter) change(h header) {
	w.uint(itemChange)
	w.uint(h.uint64(atNumber))
	w.uint(uint64(h.uint32(atRuns)))
	w.uint(h.uint64(atLast))
	w.uint(h.uint64(atNext))
	w.uint(h.uint64(atVersion))
	w.uint(uint64(h.uint32(atSettled)))
}

// size is about how many bytes the block will have, with its words.
func (w *fileWriter) size() int {
	size := len(w.b)
	for _, word := range w.words.text[w.committed:] {
		size += len(word) + wordHead
	}
	return size
}

// wordHead is what a word takes in a block besides its bytes: what it is, and its length.
const wordHead = 3

// block returns the block, with the words that its runs need before them.
func (w *fileWriter) block(numbers uint64) []byte {
	head := encoder{b: append(w.whole[:0], make([]byte, blockHead)...)}
	head.uint(itemNumbers)
	head.uint(numbers)
	for _, word := range w.words.text[w.committed:] {
		head.uint(itemWord)
		head.text(word)
	}
	w.whole = append(head.b, w.b...)
	return w.whole
}

// commit notes that the block is in the file.
func (w *fileWriter) commit() { w.committed = len(w.words.text) }

// discard takes back the words of a block that could not be written.
func (w *fileWriter) discard() {
	for _, word := range w.words.text[w.committed:] {
		delete(w.words.number, word)
		w.words.room += len(word) + wordOverhead
	}
	w.words.text = w.words.text[:w.committed]
}

// restoredWords returns the words of a file that exists.
func restoredWords(all []string, room int) *words {
	w := newWords(room)
	for i, word := range all {
		w.number[word] = uint32(i)
		w.room -= len(word) + wordOverhead
	}
	w.text = all
	return w
}
