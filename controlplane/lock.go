// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/setpoint-io/setpoint/internal/filelock"
	"github.com/setpoint-io/setpoint/internal/ownfile"
)

// dirLock keeps a second process out of a data directory. It is a flock, so
// that the kernel drops it with the process, however that ends; the file's
// content, the holder's process id, is only for the message.
type dirLock struct{ file *os.File }

// lockDir takes the lock or fails at once with ErrDataDirLocked.
func lockDir(dir *ownfile.Dir) (*dirLock, error) {
	f, err := dir.Open(lockFile, os.O_RDWR|os.O_CREATE)
	if errors.Is(err, ownfile.ErrNotOwn) {
		return nil, untrusted(err)
	}
	if err != nil {
		return nil, diskError(fmt.Errorf("locking data directory: %w; choose a directory that you may write to", err))
	}
	if locked, err := filelock.Try(f); !locked {
		holder := readPID(f)
		_ = f.Close() // opened only to try the lock
		if err == nil {
			return nil, fmt.Errorf("%w: process %s runs a control plane in %s; stop it first (kill %s), or choose another directory",
				ErrDataDirLocked, holder, dir.Path(), holder)
		}
		return nil, fmt.Errorf("locking %s: %w; the file system must support flock", f.Name(), err)
	}
	l := &dirLock{file: f}
	if err := l.writePID(); err != nil {
		return nil, errors.Join(diskError(fmt.Errorf("writing %s: %w", f.Name(), err)), l.release())
	}
	return l, nil
}

func (l *dirLock) writePID() error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// release leaves the file: removing it would let two later processes lock two
// different files of the same name.
func (l *dirLock) release() error { return l.file.Close() }

// readPID returns the process id in a lock file. Anything else is not repeated.
func readPID(f io.Reader) string {
	var text [20]byte // of the longest integer
	n, err := io.ReadFull(f, text[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "(unknown)"
	}
	return parsePID(text[:n])
}

func parsePID(text []byte) string {
	pid, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 31)
	if err != nil || pid == 0 {
		return "(unknown)"
	}
	return strconv.FormatUint(pid, 10)
}
