// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race && !msan && !asan

package quiet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// Conn returns a connection of the net package as a quiet one. One of another package it returns as it is.
func Conn(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return c
	}
	q := &conn{Conn: c, raw: raw}
	q.reading.attempt, q.writing.attempt = q.tryRead, q.tryWrite
	connections.opened()
	return q
}

// atOnce is the most that is read or written with one raw call, which nothing interrupts: 64 KB are copied in some 10 µs.
const atOnce = 64 << 10

// conn is a TCP connection. It has the methods of net.Conn alone: with that for the file, a user could make its socket one that blocks.
type conn struct {
	net.Conn

	raw     syscall.RawConn
	reading transfer
	writing transfer
	full    bool // the last read filled its buffer
	ended   sync.Once
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.ended.Do(connections.closed)
	return c.Conn.Close()
}

// transfer is a read or a write that is under way, one at a time.
type transfer struct {
	mu      sync.Mutex
	rest    []byte // what is to be read into, or written
	n       int    // bytes that were
	failure error
	attempt func(fd uintptr) (done bool)
}

// run attempts the transfer until it is done, and waits for the poller between two attempts. The caller holds mu.
func (t *transfer) run(b []byte, wait func(func(uintptr) bool) error) (int, error) {
	t.rest, t.n, t.failure = b, 0, nil
	err := wait(t.attempt)
	n, failure := t.n, t.failure
	t.rest, t.failure = nil, nil
	if err == nil {
		err = failure
	}
	return n, err
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	c.reading.mu.Lock()
	defer c.reading.mu.Unlock()
	if c.full || len(b) == 0 || len(b) > atOnce {
		n, err := c.Conn.Read(b)
		c.full = n == len(b) && n > 0
		return n, err
	}
	n, err := c.reading.run(b, c.raw.Read)
	c.full = n == len(b)
	switch {
	case err != nil:
		return 0, c.failed("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	c.writing.mu.Lock()
	defer c.writing.mu.Unlock()
	if len(b) == 0 || len(b) > atOnce {
		return c.Conn.Write(b)
	}
	n, err := c.writing.run(b, c.raw.Write)
	if err != nil {
		err = c.failed("write", err)
	}
	return n, err
}

func (c *conn) tryRead(fd uintptr) (done bool) {
	n, failure := transferred(syscall.SYS_READ, fd, c.reading.rest)
	if failure == syscall.EAGAIN {
		return false
	}
	c.reading.n = n
	if failure != 0 {
		c.reading.failure = os.NewSyscallError("read", failure)
	}
	return true
}

func (c *conn) tryWrite(fd uintptr) (done bool) {
	for t := &c.writing; len(t.rest) > 0; {
		n, failure := transferred(syscall.SYS_WRITE, fd, t.rest)
		switch {
		case failure == syscall.EAGAIN:
			return false
		case failure != 0:
			t.failure = os.NewSyscallError("write", failure)
			return true
		case n == 0:
			t.failure = io.ErrUnexpectedEOF
			return true
		}
		t.n += n
		t.rest = t.rest[n:]
	}
	return true
}

// transferred reads or writes what is possible now. The socket does not block.
func transferred(call, fd uintptr, b []byte) (n int, failure syscall.Errno) {
	for {
		r, _, failure := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))) //nolint:gosec // as package syscall does
		if failure != syscall.EINTR {
			return int(r), failure
		}
	}
}

// failed returns an error in the words of the net package.
func (c *conn) failed(op string, err error) error {
	if of, ok := err.(*net.OpError); ok { //nolint:errorlint // that of the poller, which nothing wraps
		of.Op = op
		return of
	}
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}
