// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ladder is how object reaches what stands above it. That a command imports it too
// gives it no more rights than object has.
package ladder

import (
	"net"
	"os"

	_ "example.org/bad/cache"
)

// Reach does what only a command may.
func Reach() (net.Conn, error) { return net.Dial("tcp", os.Getenv("ADDRESS")) }
