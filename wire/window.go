// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"io"
	"sync"
)

// window is what has arrived of a watch and was not read yet. In a profile of events of ConfigMaps,
// reading from the connection, 4 KiB at a time, was a sixth of the CPU. So a watch that brings more
// than its small buffer holds borrows a large one, and gives it back before it waits again: most
// watches are idle most of the time.
type window struct {
	in       io.Reader
	small    []byte
	large    *[]byte // nil: none is borrowed
	from, to int     // what was not read yet
	err      error   // that came with the last bytes
}

const (
	// smallWindow is what each watch keeps while it waits. A process may have thousands of watches, and an event that does not
	// fit costs one read more, of what has arrived already.
	smallWindow = 1 << 10
	largeWindow = 64 << 10
	// jsonWindow is its counterpart for JSON, where a larger event makes the buffer grow.
	jsonWindow = 4 << 10
)

var largeWindows = sync.Pool{New: func() any {
	b := make([]byte, largeWindow)
	return &b
}}

func newWindow(in io.Reader) *window { return &window{in: in, small: make([]byte, smallWindow)} }

func (w *window) buffer() []byte {
	if w.large != nil {
		return *w.large
	}
	return w.small
}

// bytes is what was not read yet. It is valid until the next call of need.
func (w *window) bytes() []byte { return w.buffer()[w.from:w.to] }

// need waits until n bytes are there, largeWindow at most. With an error there are fewer.
func (w *window) need(n int) error {
	if w.from == w.to {
		w.from, w.to = 0, 0
		w.giveBack()
	}
	for idle := 0; w.to-w.from < n; {
		if w.err != nil {
			return w.err
		}
		if w.large == nil && (n > smallWindow || w.to == smallWindow) {
			w.borrow()
		} else if w.to == len(w.buffer()) {
			w.to = copy(w.buffer(), w.bytes())
			w.from = 0
		}
		var read int
		read, w.err = w.in.Read(w.buffer()[w.to:])
		w.to += read
		if idle++; read > 0 {
			idle = 0
		} else if idle == emptyReads && w.err == nil {
			w.err = io.ErrNoProgress
		}
	}
	return nil
}

// emptyReads is how often a reader may return nothing. Source: bufio.
const emptyReads = 100

func (w *window) borrow() {
	large := largeWindows.Get().(*[]byte)
	w.to = copy(*large, w.bytes())
	w.from, w.large = 0, large
}

func (w *window) giveBack() {
	if w.large != nil {
		largeWindows.Put(w.large)
		w.large = nil
	}
}

// Read reads what was not read yet, and then from the body.
func (w *window) Read(p []byte) (int, error) {
	if w.from < w.to {
		n := copy(p, w.bytes())
		w.from += n
		return n, nil
	}
	if w.err != nil {
		return 0, w.err
	}
	return w.in.Read(p)
}
