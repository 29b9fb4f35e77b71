// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package up

import "syscall"

// dieWithParent does nothing: only Linux can tell a child of its parent's end.
func dieWithParent(*syscall.SysProcAttr) {}
