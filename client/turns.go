// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"io"
	"sync/atomic"
)

// atOnce is how many requests of a client, watches and lists beside, are with the server
// at the same time. An API server takes 100 streams on a connection
// (k8s.io/apiserver/pkg/server, secure_serving.go). Go's transport dials for each
// request beyond that and throws most of the connections away: a burst of five times
// 400 creates spent a fifth of the process's time on TLS handshakes. Beside the watches
// of a manager this many fit into one connection, or two, and a server of any size is
// kept busy: at 10 ms a request it is 6,400 a second.
//
// One connection with HTTP/2 is also what costs the client least: answers that arrive together cost
// one system call. With 64 writers a patch took 99 µs of CPU, 120 with two connections, 134 with
// four, and 168 with HTTP/1.1. Only a single writer is cheaper with HTTP/1.1, by a seventh.
const atOnce = 64

// turns bounds the number of requests at a time.
type turns chan struct{}

// take waits for a turn.
func (t turns) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	default:
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turns) give() { <-t }

// giving is an answer's body whose end gives the turn back.
type giving struct {
	io.ReadCloser
	turns turns
	given atomic.Bool
}

func (t turns) until(body io.ReadCloser) io.ReadCloser { return &giving{ReadCloser: body, turns: t} }

func (g *giving) Close() error {
	defer func() {
		if g.given.CompareAndSwap(false, true) {
			g.turns.give()
		}
	}()
	return g.ReadCloser.Close()
}
