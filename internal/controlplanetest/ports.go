// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// A restart needs the same ports again. They are below the range from which a kernel gives
// ports to programs that listen on any port: 32768 and above on Linux, 49152 and above on
// other systems.
const (
	firstPort = 20000
	lastPort  = 32000
	portTries = 100
)

// freePorts returns the first of n ports in a row that no process listens on.
func freePorts(ctx context.Context, n int) (int, error) {
	for range portTries {
		first := firstPort + rand.IntN(lastPort-firstPort-n)
		if areFree(ctx, first, n) {
			return first, nil
		}
	}
	return 0, fmt.Errorf("looking for %d free ports between %d and %d: none after %d tries", n, firstPort, lastPort, portTries)
}

func areFree(ctx context.Context, first, n int) bool {
	var listen net.ListenConfig
	for port := first; port < first+n; port++ {
		l, err := listen.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return false
		}
		if l.Close() != nil {
			return false
		}
	}
	return true
}
