// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// What a client may take: time for a request, its body included, for an answer, and between
// two requests; bytes for the line of the request and its headers.
const (
	requestTime = 10 * time.Second
	answerTime  = 30 * time.Second
	idleTime    = 90 * time.Second
	headerMost  = 32 << 10
)

// stopTime is how long the requests in progress may take when [Server.Run] ends.
const stopTime = 5 * time.Second

// Server serves the pages of a process on one listener. Make it with [New], add the pages, and
// then start it, once.
type Server struct {
	options  Options
	listener net.Listener
	tls      *tls.Config // nil if Plain
	access   *access     // nil if Plain
	log      *slog.Logger

	mux  *http.ServeMux
	rows []row // of the index
}

// New returns a server. It connects to nothing. The error says which option cannot be served
// with. Start or Run closes the listener at its end; after an error the caller does.
func New(l net.Listener, o Options) (*Server, error) {
	s := &Server{options: o, listener: l, log: cmp.Or(o.Log, slog.Default()), mux: http.NewServeMux()}
	if err := s.prepare(); err != nil {
		return nil, fmt.Errorf("serving on %s: %w", l.Addr(), err)
	}
	_, guard := s.guards()
	s.mux.Handle("GET /{$}", guard(http.HandlerFunc(s.index), need{}))
	if o.Profiling {
		s.addProfiles(func(h http.Handler) http.Handler { return guard(h, need{}) })
	}
	return s, nil
}

// prepare checks the options, and makes what authenticates and encrypts.
func (s *Server) prepare() error {
	o := &s.options
	if o.Plain {
		if tcp, ok := s.listener.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
			return errors.New("without TLS that is open to the network; use a loopback address such as 127.0.0.1")
		}
		return nil
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		return errors.New("a certificate and its key are needed, or none of them")
	}
	if o.Config == nil {
		return errors.New("no API server is named that says who may see the pages; want Options.Config, or Plain")
	}
	if err := checkOpen(o.OpenPaths); err != nil {
		return err
	}
	if err := o.inCertDir(s.listener.Addr()); err != nil {
		return err
	}
	var err error
	if s.access, err = newAccess(o, s.log); err != nil {
		return err
	}
	s.tls, err = s.encryption()
	return err
}

// encryption returns how connections are encrypted.
func (s *Server) encryption() (*tls.Config, error) {
	o := &s.options
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if s.access.certificates.any() {
		config.ClientAuth = tls.RequestClientCert // each request decides whether it counts
	}
	if o.CertFile != "" {
		pair, err := newKeyPair(o.CertFile, o.KeyFile, s.log)
		if err != nil {
			return nil, err
		}
		config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.get(), nil }
		return config, o.TLS.into(config, s.log)
	}
	c, err := selfMade(s.listener.Addr())
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	config.Certificates = []tls.Certificate{c}
	return config, o.TLS.into(config, s.log)
}

// Health adds a page that needs no rights, unless [Options.OpenPaths] says otherwise, and one
// below it for each check: see [Health.Handler]. about is its line in the index. Two pages of
// one path are a panic, as in [http.ServeMux].
func (s *Server) Health(path, about string, h http.Handler) {
	open, _ := s.guards()
	s.mux.Handle("GET "+path, open(h))
	s.mux.Handle("GET "+path+"/{check}", open(h))
	s.rows = append(s.rows, row{path, about})
}

// Page adds a page for users with the right to get its path. about is its line in the index.
// Two pages of one path are a panic, as in [http.ServeMux].
func (s *Server) Page(path, about string, h http.Handler) { s.PageInParts(path, "", about, h) }

// PageInParts adds a page as Page does. Users with the right to get the path part reach the handler too: it uses
// [ViewerOf] to find out which parts of the page they may see. No page needs to exist at that path.
func (s *Server) PageInParts(path, part, about string, h http.Handler) {
	_, guard := s.guards()
	s.mux.Handle("GET "+path, guard(h, need{part: part}))
	s.rows = append(s.rows, row{path, about})
}

// Below adds a handler of the path and of all paths below it, for users with the right to get the path itself. The handler
// gets requests with their whole paths, and uses [ViewerOf] to find out which objects a user may see. It may write for
// longer than other pages: it sets the deadlines by [http.ResponseController].
func (s *Server) Below(path, about string, h http.Handler) {
	_, guard := s.guards()
	h = guard(h, need{path: path})
	s.mux.Handle("GET "+path+"/", h)
	s.mux.Handle("GET "+path, http.RedirectHandler(path+"/", http.StatusFound))
	s.rows = append(s.rows, row{path + "/", about})
}

// Handler returns the pages with what decides who may see them, for tests. The server itself
// serves the same.
func (s *Server) Handler() http.Handler {
	if s.options.Plain {
		return LocalOnly(s.mux)
	}
	return s.mux
}

// Start begins to serve. end stops it: requests in progress may take the time most, and are
// broken off then.
func (s *Server) Start() (end func(most time.Duration)) {
	var listener net.Listener = newBounded(s.listener)
	if s.tls != nil {
		listener = tls.NewListener(listener, s.tls)
	}
	server := &http.Server{
		Handler:     s.Handler(),
		ReadTimeout: requestTime, WriteTimeout: answerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerMost,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // of bad handshakes and the like
	}
	s.options.TLS.streams(server)
	var task sync.WaitGroup
	task.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("no longer serving", "address", listener.Addr().String(), "error", err)
		}
	})
	s.log.Info("serving health and metrics", "address", listener.Addr().String(), "tls", s.tls != nil)
	return func(most time.Duration) {
		ctx, cancel := context.WithTimeout(context.Background(), most)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close() // a profile may still be in progress
		}
		task.Wait()
	}
}

// Run serves until ctx ends. The error is that of [Server.LookUp]. It is for programs without a
// manager: a manager starts and ends its servers itself.
func (s *Server) Run(ctx context.Context) error {
	defer s.Start()(stopTime)
	end, err := s.LookUp(ctx)
	if err != nil {
		return err
	}
	defer end()
	<-ctx.Done()
	return nil
}
