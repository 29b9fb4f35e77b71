// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// soakProxy stands between the control plane and those who follow it, and cuts their
// connections. It knows nothing of what it hands on: that is TLS.
type soakProxy struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]struct{} // both ends of each connection
	cuts   int
	closed bool
}

func startSoakProxy(ctx context.Context, target string) (*soakProxy, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the proxy: %w", err)
	}
	p := &soakProxy{listener: listener, target: target, open: map[net.Conn]struct{}{}}
	p.running.Go(p.accept)
	return p, nil
}

func (p *soakProxy) url() string { return "https://" + p.listener.Addr().String() }

func (p *soakProxy) accept() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return // it is closed
		}
		p.running.Go(func() { p.serve(from) })
	}
}

// serve hands on what comes from either end until one of them ends.
func (p *soakProxy) serve(from net.Conn) {
	defer func() { _ = from.Close() }()
	dialer := net.Dialer{Timeout: 5 * time.Second}
	to, err := dialer.DialContext(context.Background(), "tcp", p.target) // it ends by itself
	if err != nil {
		return // the control plane is away
	}
	defer func() { _ = to.Close() }()
	if !p.hold(from, to) {
		return
	}
	defer p.release(from, to)
	var other sync.WaitGroup
	other.Go(func() {
		_, _ = io.Copy(to, from)
		_ = to.Close()
		_ = from.Close()
	})
	_, _ = io.Copy(from, to)
	_ = to.Close()
	_ = from.Close()
	other.Wait()
}

func (p *soakProxy) hold(ends ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, end := range ends {
		p.open[end] = struct{}{}
	}
	return !p.closed
}

func (p *soakProxy) release(ends ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, end := range ends {
		delete(p.open, end)
	}
}

// cut closes every connection, every second time with a reset.
func (p *soakProxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cuts++
	for end := range p.open {
		if tcp, ok := end.(*net.TCPConn); ok && p.cuts%2 == 0 {
			_ = tcp.SetLinger(0)
		}
		_ = end.Close()
	}
}

// stop returns when nothing of the proxy runs any more.
func (p *soakProxy) stop() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.cut()
	p.running.Wait()
}
