// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// lagProxy stands between an API server and its clients. The watches of one resource lag behind: what the server sends in
// them arrives later by a fixed time, in order. Everything else goes through at once.
type lagProxy struct {
	httputil.ReverseProxy
	resource string // plural
	lag      time.Duration
}

// newLagProxy makes a proxy to the server of a config, with its rights.
func newLagProxy(config *rest.Config, resource string, lag time.Duration) (*lagProxy, error) {
	address, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a proxy: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a proxy: %w", err)
	}
	p := &lagProxy{resource: resource, lag: lag}
	p.Transport = transport
	p.Rewrite = func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: address.Scheme, Host: address.Host}) }
	p.ModifyResponse = func(r *http.Response) error {
		if p.lag > 0 && r.StatusCode == http.StatusOK && p.lags(r.Request) {
			r.Body = newLaggingBody(r.Body, p.lag)
		}
		return nil
	}
	return p, nil
}

func (p *lagProxy) lags(r *http.Request) bool {
	return r.URL.Query().Get("watch") == "true" && strings.HasSuffix(r.URL.Path, "/"+p.resource)
}

// laggingBody is a body whose bytes can be read a fixed time after they have arrived.
type laggingBody struct {
	source io.ReadCloser
	parts  chan laggingPart
	now    laggingPart // the part that is being read
	closed chan struct{}
	once   sync.Once
}

// laggingPart is what arrived together.
type laggingPart struct {
	bytes []byte
	due   time.Time
	err   error // after bytes
}

// laggingParts is how many parts may be on their way. A watch of this benchmark has some hundred.
const laggingParts = 1 << 14

func newLaggingBody(source io.ReadCloser, lag time.Duration) *laggingBody {
	b := &laggingBody{source: source, parts: make(chan laggingPart, laggingParts), closed: make(chan struct{})}
	go func() {
		buffer := make([]byte, chunk)
		for {
			n, err := source.Read(buffer)
			select {
			case b.parts <- laggingPart{append([]byte(nil), buffer[:n]...), time.Now().Add(lag), err}:
			case <-b.closed:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return b
}

// Read implements io.Reader. It is called by one goroutine.
func (b *laggingBody) Read(into []byte) (int, error) {
	for len(b.now.bytes) == 0 && b.now.err == nil {
		select {
		case b.now = <-b.parts:
		case <-b.closed:
			return 0, io.ErrClosedPipe
		}
		select {
		case <-time.After(time.Until(b.now.due)):
		case <-b.closed:
			return 0, io.ErrClosedPipe
		}
	}
	n := copy(into, b.now.bytes)
	b.now.bytes = b.now.bytes[n:]
	if len(b.now.bytes) == 0 {
		return n, b.now.err
	}
	return n, nil
}

// Close implements io.Closer. It may be called while another goroutine reads.
func (b *laggingBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.source.Close()
}
