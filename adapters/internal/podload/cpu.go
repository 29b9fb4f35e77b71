// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package podload

import (
	"syscall"
	"testing"
	"time"
)

// CPU returns the CPU time that the process has used.
func CPU(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
