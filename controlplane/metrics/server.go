// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controlplane/internal/loopback"
)

// userAgent is who the Server says it is, in audit logs and managed fields.
const userAgent = "setpoint-metrics"

// Server serves the three APIs.
type Server struct {
	Options
	listener net.Listener
	http     *http.Client
	api      *clients
	objects  objects
	now      func() time.Time
}

// New opens a port for a Server, which Run then uses. It returns an error for Options
// that it cannot work with, or if no port is free.
func New(ctx context.Context, opts Options) (*Server, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{Options: opts, now: time.Now}
	config := rest.CopyConfig(opts.Config)
	config.UserAgent = userAgent
	config.QPS = -1 // one request of a client leads to two of ours at most
	if s.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, fmt.Errorf("client of the metrics: %w", err)
	}
	if s.api, err = newClients(config, s.http); err != nil {
		return nil, err
	}
	s.objects = s.api
	if s.listener, err = loopback.Listen(ctx, opts.Serving.TLS); err != nil {
		return nil, fmt.Errorf("serving metrics: %w", err)
	}
	return s, nil
}

// Run serves, and registers the APIs, until ctx ends. Then it removes the APIs again and
// returns.
func (s *Server) Run(ctx context.Context) {
	// The client's transport may live on in client-go's cache; its connections, with
	// two goroutines each, must not.
	defer utilnet.CloseIdleConnectionsFor(s.http.Transport)

	var running sync.WaitGroup
	running.Go(func() {
		if err := loopback.Serve(ctx, s.listener, s.handler(), s.Logger); err != nil {
			s.Logger.Error("the metrics of simulated nodes are no longer served", "err", err)
		}
	})
	s.register(ctx)
	<-ctx.Done()
	s.unregister(ctx)
	running.Wait()
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	s.handleResources(mux)
	s.handleCustom(mux)
	s.handleExternal(mux)
	return mux
}
