// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/object"
)

// Server is an API server in memory. Make one with [New]. All its methods are safe for
// concurrent use.
type Server struct {
	// NextVersion returns the resourceVersion that follows another one, which must be
	// larger. nil counts by one. It is set before the first request.
	NextVersion func(last uint64) uint64

	// BookmarkEvery is how often a watch that wants bookmarks gets one. 0 is a minute, as
	// on a real server. It is set before the first request.
	BookmarkEvery time.Duration

	Faults
	loopback *httptest.Server // nil: the server listens nowhere

	mu        sync.Mutex
	resources []*Resource // in the order in which Serve was called
	history
	random  *generator
	more    chan struct{}                             // closed and replaced whenever watches have to look
	watches map[*watching]bool                        // those that are open
	open    map[*http.Request]context.CancelCauseFunc // the requests that are being answered
	record  []Request
	closed  bool
}

// New returns a server of some resources that listens nowhere: a client with its
// [Server.Config] reaches it within the process. It works in a bubble of testing/synctest,
// and need not be closed.
func New(resources ...object.Resource) *Server {
	s := &Server{
		history: newHistory(), random: newGenerator(), more: make(chan struct{}),
		watches: map[*watching]bool{}, open: map[*http.Request]context.CancelCauseFunc{},
	}
	s.Faults.server = s
	for _, r := range resources {
		s.Serve(r)
	}
	return s
}

// Listen has the server listen on a free port of the loopback interface as well, for
// clients in other processes. Call Close at the end. Config then leads there.
func (s *Server) Listen() *Server {
	s.loopback = httptest.NewServer(s)
	return s
}

// Close ends all requests, and the listening. Requests that come later are cut at once: a
// client that watches again would otherwise hold up the end of the listening for as long
// as its watch lasts.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.CutConnections()
	if s.loopback != nil {
		s.loopback.Close()
	}
}

// Config returns what a client needs to reach the server.
func (s *Server) Config() *rest.Config {
	if s.loopback == nil {
		return &rest.Config{Host: "http://in-memory", Transport: s}
	}
	return &rest.Config{Host: s.loopback.URL}
}

// errCut ends requests whose connection is cut.
var errCut = errors.New("the connection was cut")

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	r = r.WithContext(ctx)
	if !s.enter(r, cancel) {
		panic(http.ErrAbortHandler)
	}
	defer s.leave(r)
	s.serve(w, r)
	if errors.Is(context.Cause(ctx), errCut) {
		panic(http.ErrAbortHandler) // net/http's way to break a connection
	}
}

// enter notes how to cut a request. It returns false if the server is closed.
func (s *Server) enter(r *http.Request, cut context.CancelCauseFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.open[r] = cut
	}
	return !s.closed
}

// leave forgets a request that was answered.
func (s *Server) leave(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, r)
}

// serve answers a request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if s.serveDiscovery(w, r) {
		return
	}
	q, resource := s.understand(r)
	if resource == nil {
		s.notServed(w, r)
		return
	}
	s.note(q)
	a := answer{w: w}
	if err := a.negotiate(r.Header.Get("Accept"), resource); err != nil {
		a.fail(err)
		return
	}
	if refusal := resource.before(q); refusal != nil {
		a.status(refusal)
		return
	}
	if r.Context().Err() != nil {
		return
	}
	if q.Verb == "watch" {
		if err := resource.watch(q, &a); err != nil {
			a.fail(err)
		}
		return
	}
	send := resource.carryOut(q, &a)
	if resource.losesAnswer(q) {
		panic(http.ErrAbortHandler)
	}
	send()
}

// notServed answers requests for what the server does not have.
func (s *Server) notServed(w http.ResponseWriter, r *http.Request) {
	p, ok := parsePath(r.URL.Path)
	known := ok && slices.ContainsFunc(s.served(), func(r *Resource) bool { return r.Group == p.group && r.Version == p.version })
	if !known {
		http.NotFound(w, r)
		return
	}
	a := answer{w: w}
	a.fail(unnamed(http.StatusNotFound, ""))
}

// carryOut does what a request asks for. It returns what sends the answer.
func (r *Resource) carryOut(q *Request, a *answer) (send func()) {
	result, err := r.do(q, a)
	if err != nil {
		return func() { a.fail(err) }
	}
	return func() { a.send(result) }
}

// do does what a request asks for.
func (r *Resource) do(q *Request, a *answer) (result, error) {
	body, err := q.body()
	if err != nil {
		return result{}, err
	}
	if err := r.allows(q); err != nil {
		return result{}, err
	}
	switch q.Verb {
	case "get":
		return r.get(q)
	case "list":
		return r.list(q, a)
	case "create":
		return r.create(q, body)
	case "update":
		return r.replace(q, body)
	case "patch":
		return r.patch(q, body)
	case "delete":
		return r.delete(q, body)
	default:
		return r.deleteCollection(q, a, body)
	}
}

// wake has all watches look for something to send. mu is held.
func (s *Server) wake() {
	close(s.more)
	s.more = make(chan struct{})
}
