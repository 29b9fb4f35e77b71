// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package ownfile

import (
	"io/fs"
	"syscall"
)

// Opening never follows a link in the last element of the path, and never waits for the other
// side of a pipe.
const safely = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

func ownerOf(info fs.FileInfo) (owner user, known bool) {
	s, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return user(s.Uid), true
}

// names is how many names a file has.
func names(info fs.FileInfo) uint64 {
	if s, known := info.Sys().(*syscall.Stat_t); known {
		return uint64(s.Nlink) //nolint:unconvert // 16 bits on darwin
	}
	return 1
}
