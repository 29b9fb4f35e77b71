// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import "syscall"

// ownTerminal gives a process a session of its own, whose terminal is its standard input. The kernel sends the process
// SIGHUP when the side of the person is closed.
func ownTerminal() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true, Setctty: true} }
