// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// endWithChildren has the command run in a process group of its own, which is
// killed as a whole when its context ends: test2json does not end the test that
// it started.
func endWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
