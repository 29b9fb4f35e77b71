// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// pipes is a listener without a network, for a test whose time is its own. Each connection
// has the address that its caller names.
type pipes struct {
	connections chan net.Conn
	closed      chan struct{}
	closeOnce   sync.Once
}

func newPipes() *pipes {
	return &pipes{connections: make(chan net.Conn), closed: make(chan struct{})}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.connections:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.closeOnce.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 10257} }

// pipe is the server's end of a connection.
type pipe struct {
	net.Conn
	from net.Addr
}

func (p pipe) RemoteAddr() net.Addr { return p.from }

// dial connects from an address.
func (p *pipes) dial(ctx context.Context, from string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.connections <- pipe{Conn: theirs, from: &net.TCPAddr{IP: net.ParseIP(from), Port: 40000}}:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// get asks over a connection of its own, with TLS if secure is set, and returns the code and
// the text of the answer; 0 if there was none.
func (p *pipes) get(t *testing.T, secure bool, path, token string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := p.dial(ctx, "10.0.0.9")
	if err != nil {
		return 0, err.Error()
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if secure {
		over := tls.Client(c, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the certificate is self-made
		if err := over.HandshakeContext(ctx); err != nil {
			return 0, err.Error()
		}
		c = over
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, http.NoBody)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	var writing sync.WaitGroup
	writing.Go(func() { _ = r.Write(c) }) // that the server does not read it shows in the answer
	response, err := http.ReadResponse(bufio.NewReader(c), r)
	if err != nil {
		_ = c.Close()
		writing.Wait()
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	_ = c.Close()
	writing.Wait()
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}
