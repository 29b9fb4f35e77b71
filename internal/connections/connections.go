// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package connections

import (
	"context"
	"net"
	"time"

	"k8s.io/client-go/rest"
)

// Apart returns a configuration whose clients have connections of their own. Clients of
// equal configurations share theirs otherwise, in client-go's cache of transports: what one
// of them sends and reads then holds up the others, down to the lease.
func Apart(config *rest.Config) *rest.Config {
	if config == nil || config.Transport != nil { // a nil one is an error, and a transport is its maker's choice
		return config
	}
	config = rest.CopyConfig(config)
	dial := config.Dial
	if dial == nil {
		// Source: k8s.io/client-go/transport, tlsTransportCache.
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	// The cache tells transports apart by where their dialer is.
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		return dial(ctx, network, address)
	}
	return config
}

// OneByOne returns a configuration with which each request has a connection to itself while
// it is under way (HTTP/1.1). A request that times out closes its connection, and the next
// dials: a connection that lost its other end without a word costs one renewal of a lease,
// where a connection with HTTP/2 would be used until the loss is noticed.
func OneByOne(config *rest.Config) *rest.Config {
	if config == nil || config.Transport != nil {
		return config
	}
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"}
	return config
}
