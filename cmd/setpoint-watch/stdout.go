// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
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

// goneEvery is how often it is looked whether the watch has ended, while nobody reads or goes
// away.
const goneEvery = time.Second

// awaitGone waits until who reads a pipe has closed it, or the watch ends. A write would say
// so too; but "head -1" is done when it has its line, and the next one may come in an hour.
func (r *reader) awaitGone() {
	f, ok := r.out.(*os.File)
	if !ok {
		return
	}
	if info, err := f.Stat(); err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return
	}
	// That the other end is closed is reported without being asked for.
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	for r.ctx.Err() == nil {
		switch n, err := unix.Poll(fds, int(goneEvery.Milliseconds())); {
		case err != nil && !errors.Is(err, unix.EINTR):
			return // writes still tell
		case n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0:
			r.gone()
			return
		case n > 0:
			return // something that cannot be waited for
		}
	}
}
