// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import "syscall"

// dieWithParent has the kernel end a child when this process is killed. The
// control plane needs no such help: it notices itself.
func dieWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGTERM }
