// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package processors

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU that the process has used, in user space and in the kernel.
func cpuTime() (used time.Duration, ok bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
