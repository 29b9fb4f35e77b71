// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Address is where the servers listen.
const Address = "127.0.0.1"

const (
	// headerTimeout bounds how long a client may take to send a request.
	headerTimeout = 10 * time.Second

	// grace bounds how long a stop waits for requests. Those that follow a log end
	// with the context, all others take milliseconds.
	grace = 2 * time.Second
)

// Listen opens a free port. The listener closes with the server of Serve.
func Listen(ctx context.Context, config *tls.Config) (net.Listener, error) {
	var free net.ListenConfig
	l, err := free.Listen(ctx, "tcp", net.JoinHostPort(Address, "0"))
	if err != nil {
		return nil, fmt.Errorf("listening on a port of %s: %w", Address, err)
	}
	return tls.NewListener(l, config), nil
}

// Port returns the port of a listener of Listen.
func Port(l net.Listener) int32 { return int32(l.Addr().(*net.TCPAddr).Port) }

// Serve answers with the handler until ctx ends, and returns when no request is under
// way; after a grace period of two seconds it cuts those that are left. It returns an
// error if it has to end before ctx does. Log gets what is wrong with single connections,
// at the level of debug.
func Serve(ctx context.Context, l net.Listener, handler http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	// The API server upgrades connections for exec, which HTTP/2 does not have.
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true)

	stopped := make(chan struct{})
	notStopped := context.AfterFunc(ctx, func() {
		defer close(stopped)
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if err := server.Shutdown(bounded); err != nil {
			_ = server.Close() // cuts the requests that are left
		}
	})
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		if notStopped() {
			_ = server.Close()
		}
		return err
	}
	<-stopped
	return nil
}
