// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package terminal

import "syscall"

// ownTerminal does nothing here: a terminal cannot be opened either.
func ownTerminal() *syscall.SysProcAttr { return nil }
