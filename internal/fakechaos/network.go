// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakechaos

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
)

// network connects clients to the server without leaving the process: net.Pipe
// blocks on channels alone, which a synctest bubble understands.
type network struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
	dice   *dice

	mu      sync.Mutex
	refuses bool
	open    map[*connection]bool
}

func newNetwork(d *dice) *network {
	return &network{accept: make(chan net.Conn), closed: make(chan struct{}), dice: d, open: map[*connection]bool{}}
}

// transport is a client's side.
func (n *network) transport() http.RoundTripper {
	return &http.Transport{DialContext: n.dial, DisableCompression: true}
}

func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	n.mu.Lock()
	refuses := n.refuses
	n.mu.Unlock()
	if refuses {
		n.dice.count(Refused)
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	client, server := net.Pipe()
	c := &connection{Conn: server, network: n, left: -1}
	if n.dice.once(Cut, 3) {
		// Short ones end in a header, long ones in the middle of an object.
		c.left = n.dice.number(1 << (4 + n.dice.number(15)))
	}
	select {
	case n.accept <- c:
	case <-n.closed:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: net.ErrClosed}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n.mu.Lock()
	n.open[c] = true
	n.mu.Unlock()
	return client, nil
}

// refuse has the network take no new connections and break the old ones, or take
// them again.
func (n *network) refuse(yes bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refuses = yes
	for c := range n.open {
		if yes {
			_ = c.Conn.Close()
		}
	}
}

// Accept, Close and Addr make it the server's net.Listener.
func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.accept:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error   { n.once.Do(func() { close(n.closed) }); return nil }
func (n *network) Addr() net.Addr { return &net.UnixAddr{Name: "chaos", Net: "pipe"} }

// connection is the server's end. It breaks once it has sent what is left to it.
type connection struct {
	net.Conn
	network *network
	left    int // bytes; below zero: it holds
}

var errCut = errors.New("the connection was cut")

func (c *connection) Write(p []byte) (int, error) {
	if c.left < 0 || c.network.dice.calm() {
		return c.Conn.Write(p)
	}
	n, err := c.Conn.Write(p[:min(len(p), c.left)])
	c.left -= n
	if err == nil && c.left == 0 {
		c.network.dice.count(Cut)
		_ = c.Close()
		return n, errCut
	}
	return n, err
}

func (c *connection) Close() error {
	c.network.mu.Lock()
	delete(c.network.open, c)
	c.network.mu.Unlock()
	return c.Conn.Close()
}
