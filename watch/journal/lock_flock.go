// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package journal

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// lockPoll is how often a lock that somebody has is asked for again.
const lockPoll = 20 * time.Millisecond

// lockFile locks an open file until it is closed, and asks again until the deadline.
func lockFile(f *os.File, deadline time.Time) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
			continue
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return os.NewSyscallError("locking it", err)
		case !time.Now().Before(deadline):
			return ErrLocked
		}
		time.Sleep(lockPoll)
	}
}
