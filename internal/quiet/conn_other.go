// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux || race || msan || asan

package quiet

import "net"

// Conn returns the connection as it is. The system calls are those of Linux, and detectors of races do not see what a raw call reads.
func Conn(c net.Conn) net.Conn { return c }
