// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// Sharing says whether others may listen on the same port: of the same address too, or of
// other addresses.
type Sharing struct{ Port, Address bool }

// control sets the options of a socket before it is bound.
func (s Sharing) control(_, _ string, socket syscall.RawConn) error {
	var port, address error
	err := socket.Control(func(fd uintptr) {
		if s.Port {
			port = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}
		if s.Address {
			address = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		}
	})
	return errors.Join(err, port, address)
}
