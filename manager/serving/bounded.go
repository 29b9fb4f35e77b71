// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net"
	"slices"
	"sync"
)

// connectionsMost is how many connections a listener has open at a time. Each costs some 50 KB
// with TLS, and as many requests may run at a time, so this bounds what strangers cost.
const connectionsMost = 256

// bounded accepts all connections and keeps a limited number open: beyond the limit it closes the
// oldest connection of the address that has most. So a client that opens many loses its own, and
// a probe or a scraper from elsewhere gets in.
type bounded struct {
	net.Listener

	mu   sync.Mutex
	of   map[string][]*boundedConnection // by address, the oldest first
	open int
}

func newBounded(l net.Listener) *bounded {
	return &bounded{Listener: l, of: map[string][]*boundedConnection{}}
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	c, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	host := c.RemoteAddr().String()
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	accepted := &boundedConnection{Conn: c, of: b, host: host}
	if victim := b.add(accepted); victim != nil {
		_ = victim.Close() // its user gets an error
	}
	return accepted, nil
}

// add notes a connection and returns the one that it replaces, if there is one.
func (b *bounded) add(c *boundedConnection) (victim *boundedConnection) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.of[c.host] = append(b.of[c.host], c)
	if b.open++; b.open <= connectionsMost {
		return nil
	}
	most := c.host
	for host, all := range b.of {
		if len(all) > len(b.of[most]) {
			most = host
		}
	}
	return b.of[most][0]
}

func (b *bounded) remove(c *boundedConnection) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.of[c.host]
	i := slices.Index(all, c)
	if i < 0 {
		return // closed twice
	}
	b.open--
	if len(all) == 1 {
		delete(b.of, c.host)
		return
	}
	b.of[c.host] = slices.Delete(all, i, i+1)
}

// boundedConnection is a connection that counts until it is closed.
type boundedConnection struct {
	net.Conn
	of   *bounded
	host string
}

// Close implements net.Conn.
func (c *boundedConnection) Close() error {
	c.of.remove(c)
	return c.Conn.Close()
}
