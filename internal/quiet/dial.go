// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package quiet

import (
	"context"
	"net"
	"time"

	"k8s.io/client-go/transport"
)

// Dialer makes quiet connections. All clients with this one and with equal credentials share their connections.
var Dialer = &transport.DialHolder{Dial: dial}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	// Source: k8s.io/client-go/transport, tlsTransportCache.
	c, err := (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return Conn(c), nil
}
