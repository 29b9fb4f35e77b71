// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

// parts is a body whose reads return one part each, and then an error.
type parts struct {
	left  [][]byte
	reads int
	err   error
}

func (p *parts) Read(b []byte) (int, error) {
	p.reads++
	if len(p.left) == 0 {
		return 0, p.err
	}
	n := copy(b, p.left[0])
	if p.left[0] = p.left[0][n:]; len(p.left[0]) == 0 {
		p.left = p.left[1:]
	}
	return n, nil
}

func bookmarkFrame(size int) []byte {
	// Field 15, which no event has, makes the frame as large as needed.
	filler := binary.AppendUvarint([]byte{15<<3 | 2}, uint64(size))
	body := append(append([]byte("\n\x08BOOKMARK"), filler...), make([]byte, size)...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func TestAWatchReadsManyEventsAtOnceAndIsIdleWithLittleMemory(t *testing.T) {
	const events = 200
	body := &parts{left: [][]byte{bytes.Repeat(bookmarkFrame(1000), events)}, err: io.EOF}
	w := NewWatchReader(body, Protobuf, 0)
	for range events {
		if e, err := w.Next(); err != nil || e.Type != Bookmark {
			t.Fatalf("event %q, error %v", e.Type, err)
		}
	}
	if most := events*1100/(largeWindow-smallWindow)*2 + 2; body.reads > most {
		t.Errorf("%d events of 1 KB took %d reads, want %d at most", events, body.reads, most)
	}
	if _, err := w.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("error %v at the end", err)
	}
	if w.in.large != nil {
		t.Error("a watch that waits keeps its large window")
	}
}

func TestAWatchReadsEventsOfAllSizesInPartsOfAllSizes(t *testing.T) {
	broken := errors.New("broken")
	sizes := []int{0, 1, 4000, 4090, 4096, 5000, 65500, 65536, 70000, 3, 200000, 10}
	for _, part := range []int{1, 7, 4096, 5000, 65536, 1 << 20} {
		var whole []byte
		for _, size := range sizes {
			whole = append(whole, bookmarkFrame(size)...)
		}
		whole = append(whole, bookmarkFrame(100)[:50]...)
		body := &parts{err: broken}
		for rest := whole; len(rest) > 0; {
			n := min(part, len(rest))
			body.left, rest = append(body.left, rest[:n]), rest[n:]
		}
		w := NewWatchReader(body, Protobuf, 0)
		for _, size := range sizes {
			if e, err := w.Next(); err != nil || e.Type != Bookmark {
				t.Fatalf("parts of %d: event of %d bytes: type %q, error %v", part, size, e.Type, err)
			}
		}
		if _, err := w.Next(); !errors.Is(err, broken) {
			t.Errorf("parts of %d: error %v within an event", part, err)
		}
	}
}

func TestAWatchThatReturnsNothingEnds(t *testing.T) {
	if _, err := NewWatchReader(&parts{}, Protobuf, 0).Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("error %v", err)
	}
}
