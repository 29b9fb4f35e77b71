// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"syscall"
	"time"
)

// lastWrite is how long a write may go on once the watch is to end: who reads may be a pager
// that waits for a key.
const lastWrite = 2 * time.Second

// errUnread is the error of what nobody has read at the end.
var errUnread = errors.New("what was printed last was not read in time")

// reader is who reads what is printed. A write to somebody who does not read holds nothing up
// once the watch is to end, and one who has gone away ends it.
type reader struct {
	out  io.Writer
	ctx  context.Context
	gone func()

	stuck bool // a write was left behind
}

// Write is called by one goroutine at a time.
func (r *reader) Write(b []byte) (int, error) {
	if r.stuck {
		return 0, errUnread
	}
	type result struct {
		n   int
		err error
	}
	written := make(chan result, 1)
	b = bytes.Clone(b) // the caller's, and a write may be left behind
	go func() {
		n, err := r.out.Write(b)
		written <- result{n, err}
	}()
	var over <-chan time.Time
	for asked := r.ctx.Done(); ; {
		select {
		case w := <-written:
			if errors.Is(w.err, syscall.EPIPE) {
				r.gone()
			}
			return w.n, w.err
		case <-asked:
			asked = nil
			timer := time.NewTimer(lastWrite)
			defer timer.Stop()
			over = timer.C
		case <-over:
			r.stuck = true
			return 0, errUnread
		}
	}
}
