// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race && !msan && !asan

package quiet

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Pipe writes to a pipe what it has room for.
type Pipe struct{ raw syscall.RawConn } // nil: Write writes nothing

// NewPipe returns a Pipe of a file. Write writes nothing if the file is no pipe or socket.
func NewPipe(f *os.File) *Pipe {
	if info, err := f.Stat(); err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return &Pipe{}
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return &Pipe{}
	}
	return &Pipe{raw: raw}
}

// Write writes what the pipe takes without a wait, also if the file is one that blocks, and returns how many bytes that were: RWF_NOWAIT is heeded by pipes
// since Linux 6.5. An ordinary write of the rest says why it was not all. One goroutine
// calls it.
func (p *Pipe) Write(b []byte) (n int) {
	if p.raw == nil || len(b) == 0 {
		return 0
	}
	failure := syscall.EINTR
	err := p.raw.Control(func(fd uintptr) {
		for failure == syscall.EINTR {
			n, failure = writtenAtOnce(fd, b[:min(len(b), atOnce)])
		}
	})
	if errors.Is(failure, syscall.EOPNOTSUPP) || errors.Is(failure, syscall.ENOSYS) {
		p.raw = nil // there is no use in another attempt
	}
	if err != nil || failure != 0 {
		return 0
	}
	return n
}

func writtenAtOnce(fd uintptr, b []byte) (int, syscall.Errno) {
	part := unix.Iovec{Base: unsafe.SliceData(b)} //nolint:gosec // as package unix does
	part.SetLen(len(b))
	const here = ^uintptr(0)                                                                                                    // the position of the file
	n, _, failure := syscall.RawSyscall6(unix.SYS_PWRITEV2, fd, uintptr(unsafe.Pointer(&part)), 1, here, here, unix.RWF_NOWAIT) //nolint:gosec // as package unix does
	runtime.KeepAlive(b)
	return int(n), failure
}
