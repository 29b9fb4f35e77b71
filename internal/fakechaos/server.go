// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakechaos

import (
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// Options is what a server is made of.
type Options struct {
	Kind Kind
	Seed uint64
	// Names is how many names objects can have. 0 is 300.
	Names int
	// Without are faults that do not happen.
	Without []Fault
}

// Server is a running server. It is calm until [Run] lets it rage.
type Server struct {
	kind    Kind
	dice    *dice
	network *network
	http    *http.Server
	ended   chan struct{}

	mu          sync.Mutex
	model       *model
	noWatchList bool
	asked       Asked
}

// Asked counts the requests of clients that were not refused.
type Asked struct{ Lists, WatchLists, Watches int }

// New returns a server that serves until Close.
func New(o Options) *Server {
	if o.Names == 0 {
		o.Names = 300
	}
	d := newDice(rand.New(rand.NewPCG(o.Seed, 1)), o.Without)
	s := &Server{
		kind: o.Kind, dice: d, network: newNetwork(d), ended: make(chan struct{}),
		model: newModel(o.Kind, o.Names, rand.New(rand.NewPCG(o.Seed, 2))),
	}
	s.model.api.Delay(s.latency)
	s.model.api.Before(s.refusal)
	s.http = &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(s.ended)
		if err := s.http.Serve(s.network); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // nothing but Close ends it
		}
	}()
	return s
}

// Config returns what a client needs. The connections that it opens stay in the process.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: "http://chaos", Transport: s.network.transport()}
}

// Close ends the server and every connection to it.
func (s *Server) Close() {
	_ = s.http.Close() // closing what is closed is no matter
	s.network.refuse(true)
	<-s.ended
}

// Version is the newest version.
func (s *Server) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return text(s.model.version)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch {
	case s.dice.roll(Unavailable, 32):
		http.Error(w, "no healthy upstream", http.StatusServiceUnavailable) // as a proxy answers
		return
	case q.Get("watch") == "true" || q.Get("watch") == "1":
		w = newWatching(s, w, r)
	case r.URL.Path == s.kind.collection():
		w = &listing{ResponseWriter: w, server: s}
	}
	s.model.api.ServeHTTP(w, r)
}

// latency is how long a request waits for its answer.
func (s *Server) latency(*fakeapi.Request) time.Duration {
	if !s.dice.roll(Slow, 8) {
		return 0
	}
	return time.Duration(s.dice.number(10_000)) * time.Millisecond
}

// refusal is what is answered in place of the server's answer; nil for nothing.
func (s *Server) refusal(r *fakeapi.Request) *metav1.Status {
	q := r.HTTP.URL.Query()
	switch {
	case s.dice.roll(Overloaded, 12):
		return s.later(apierrors.NewTooManyRequestsError("too many requests"))
	case s.dice.roll(Internal, 16):
		return s.later(apierrors.NewInternalError(errBroken))
	case s.dice.roll(Unavailable, 32):
		return s.later(apierrors.NewServiceUnavailable("not now"))
	case q.Get("resourceVersion") != "" && s.dice.roll(TooLarge, 20):
		return tooLarge(s.dice.number(2) == 0)
	case (r.Verb == "watch" || q.Has("continue")) && s.dice.roll(Gone, 20):
		return &apierrors.NewResourceExpired("too old resource version").ErrStatus
	case q.Get("sendInitialEvents") == "true" && s.refusesWatchLists():
		s.dice.count(NoWatchList)
		return &apierrors.NewInvalid(metav1.Kind("ListOptions"), "", nil).ErrStatus
	}
	return nil
}

var errBroken = errors.New("something is broken")

// later says when to try again, or does not.
func (s *Server) later(refusal *apierrors.StatusError) *metav1.Status {
	refusal.ErrStatus.Details = nil
	if seconds := s.dice.number(4); seconds > 0 {
		refusal.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(seconds)}
	}
	return &refusal.ErrStatus
}

// tooLarge is the answer to a request for a version of the future, in the words of today's
// servers, or of those before 1.17.5.
func tooLarge(old bool) *metav1.Status {
	const message = "Too large resource version"
	cause := metav1.StatusCause{Type: metav1.CauseTypeResourceVersionTooLarge, Message: message}
	if old {
		cause.Type = ""
	}
	s := apierrors.NewTimeoutError(message, 1).ErrStatus
	s.Details.Causes = []metav1.StatusCause{cause}
	return &s
}

func (s *Server) refusesWatchLists() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.noWatchList
}

// count counts a request that is answered.
func (s *Server) count(add func(*Asked)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	add(&s.asked)
}

// listing is the answer to a list. It may end in order, in the middle of the list.
type listing struct {
	http.ResponseWriter
	server *Server
	failed bool // the server refused the request
}

func (l *listing) WriteHeader(code int) {
	l.failed = code != http.StatusOK
	l.ResponseWriter.WriteHeader(code)
}

// Write takes the whole list at once.
func (l *listing) Write(body []byte) (int, error) {
	if l.failed {
		return l.ResponseWriter.Write(body)
	}
	l.server.count(func(a *Asked) { a.Lists++ })
	if l.server.dice.roll(TruncatedList, 8) {
		_, err := l.ResponseWriter.Write(body[:l.server.dice.number(len(body))])
		return len(body), err
	}
	return l.ResponseWriter.Write(body)
}
