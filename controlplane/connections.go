// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// listen opens a TCP port; 0 means a free one.
func listen(ctx context.Context, address string, port int) (*trackingListener, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", net.JoinHostPort(address, fmt.Sprint(port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%w: %s:%d; stop the process that listens there, or choose another port (0 takes a free one)", ErrPortInUse, address, port)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("listening on %s:%d: %w; ports below 1024 need privileges, choose a higher one", address, port, err)
	case err != nil:
		return nil, fmt.Errorf("listening for the API server: %w", err)
	}
	return &trackingListener{Listener: l, open: map[net.Conn]struct{}{}}, nil
}

// trackingListener remembers its open connections. kube-apiserver's shutdown
// leaves connections with long-running requests open when its patience ends;
// they would keep goroutines alive, and clients waiting for a dead server.
type trackingListener struct {
	net.Listener
	mu   sync.Mutex
	open map[net.Conn]struct{}
	cut  bool
}

func (l *trackingListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if t := l.track(c); t != nil {
			return t, nil
		}
		_ = c.Close() // it is not needed any more
	}
}

func (l *trackingListener) track(c net.Conn) net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return nil
	}
	t := &trackedConn{Conn: c, listener: l}
	l.open[t] = struct{}{}
	return t
}

// cutAll closes every open connection, and each new one at once. It leaves the
// listener open: kube-apiserver panics when that ends before it closed it.
func (l *trackingListener) cutAll() {
	l.mu.Lock()
	l.cut = true
	open := make([]net.Conn, 0, len(l.open))
	for c := range l.open {
		open = append(open, c)
	}
	l.mu.Unlock()
	for _, c := range open {
		_ = c.Close() // the other side may have been faster
	}
}

// closeAll closes the listener, of which no server runs any more, and every
// connection.
func (l *trackingListener) closeAll() {
	_ = l.Close() // closed already after a regular shutdown
	l.cutAll()
}

type trackedConn struct {
	net.Conn
	listener *trackingListener
}

func (c *trackedConn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.open, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
