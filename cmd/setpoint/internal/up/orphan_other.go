// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package up

import "syscall"

// dieWithParent does nothing: only Linux can signal a child when its parent ends.
func dieWithParent(*syscall.SysProcAttr) {}
