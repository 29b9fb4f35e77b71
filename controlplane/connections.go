// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// listen opens a TCP port; 0 means a free one.
func listen(address string, port int) (*trackingListener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(address, fmt.Sprint(port)))
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
	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

func (l *trackingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	t := &trackedConn{Conn: c, listener: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
	l.open[t] = struct{}{}
	return t, nil
}

// closeAll closes the listener and every connection it accepted.
func (l *trackingListener) closeAll() {
	_ = l.Close() // closed already after a regular shutdown
	l.mu.Lock()
	l.closed = true
	open := make([]net.Conn, 0, len(l.open))
	for c := range l.open {
		open = append(open, c)
	}
	l.mu.Unlock()
	for _, c := range open {
		_ = c.Close() // the other side may have been faster
	}
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
