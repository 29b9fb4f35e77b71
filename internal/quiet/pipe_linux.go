// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race && !msan && !asan

package quiet

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Pipe writes to a pipe what it has room for. A nil Pipe writes nothing.
type Pipe struct{ raw syscall.RawConn } // nil: it cannot

// NewPipe returns a Pipe of a file; nil if the file is no pipe or socket.
func NewPipe(f *os.File) *Pipe {
	if !IsPipe(f) {
		return nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	return &Pipe{raw: raw}
}

// Write writes what the pipe takes without a wait, also if the file is one that blocks, and returns how many bytes that were: RWF_NOWAIT is heeded by pipes
// since Linux 6.5. An ordinary write of the rest says why it was not all. One goroutine
// calls it.
func (p *Pipe) Write(b []byte) (n int) {
	if p == nil || p.raw == nil || len(b) == 0 {
		return 0
	}
	var failure syscall.Errno
	err := p.raw.Control(func(fd uintptr) { n, failure = writtenAtOnce(fd, b[:min(len(b), atOnce)]) })
	switch {
	case err == nil && failure == 0:
		return n
	case failure != syscall.EAGAIN:
		p.raw = nil // there is no use in another attempt
	}
	return 0
}

func writtenAtOnce(fd uintptr, b []byte) (int, syscall.Errno) {
	part := unix.Iovec{Base: unsafe.SliceData(b)} //nolint:gosec // as package unix does
	part.SetLen(len(b))
	for {
		const here = ^uintptr(0)                                                                                                    // the position of the file
		n, _, failure := syscall.RawSyscall6(unix.SYS_PWRITEV2, fd, uintptr(unsafe.Pointer(&part)), 1, here, here, unix.RWF_NOWAIT) //nolint:gosec // as package unix does
		runtime.KeepAlive(b)
		if failure != syscall.EINTR {
			return int(n), failure
		}
	}
}
