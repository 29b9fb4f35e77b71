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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/wire"
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
	more        chan struct{} // closed and replaced with each change
	pages       map[string][]*stored
	noWatchList bool
	asked       Asked
}

// Asked is how often clients asked for what, and were not refused.
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
		more:  make(chan struct{}), pages: map[string][]*stored{},
	}
	s.http = &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(s.ended)
		if err := s.http.Serve(s.network); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // nothing but Close ends it
		}
	}()
	return s
}

// Config is what a client needs. The connections it opens stay in the process.
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

// changed wakes the watches. It is called with mu held.
func (s *Server) changed() {
	close(s.more)
	s.more = make(chan struct{})
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := s.kind.encodingFor(r)
	q := r.URL.Query()
	watching := q.Get("watch") == "true" || q.Get("watch") == "1"
	if s.misbehave(w, r, e) {
		return
	}
	collection := "/api/v1/"
	if s.kind.Resource.Group != "" {
		collection = "/apis/" + s.kind.Resource.APIVersion() + "/"
	}
	switch {
	case r.URL.Path+"/" == collection:
		w.Header().Set("Content-Type", wire.JSON.MediaType())
		_, _ = w.Write(s.kind.discovery())
	case r.URL.Path != collection+s.kind.Resource.Plural:
		writeStatus(w, e, newStatus(http.StatusNotFound, metav1.StatusReasonNotFound, "no such path: "+r.URL.Path))
	case watching:
		s.serveWatch(w, r, e)
	default:
		s.serveList(w, r, e)
	}
}

// misbehave answers in place of the server, if it is such a day.
func (s *Server) misbehave(w http.ResponseWriter, r *http.Request, e wire.Encoding) bool {
	q := r.URL.Query()
	if s.dice.roll(Slow, 8) {
		wait(r, time.Duration(s.dice.number(10_000))*time.Millisecond)
	}
	var answer *metav1.Status
	switch {
	case s.dice.roll(Overloaded, 12):
		answer = newStatus(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests")
	case s.dice.roll(Internal, 16):
		answer = newStatus(http.StatusInternalServerError, metav1.StatusReasonInternalError, "something is broken")
	case s.dice.roll(Unavailable, 16):
		if s.dice.number(2) == 0 {
			http.Error(w, "no healthy upstream", http.StatusServiceUnavailable)
			return true
		}
		answer = newStatus(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "not now")
	case q.Get("resourceVersion") != "" && s.dice.roll(TooLarge, 20):
		writeStatus(w, e, tooLarge(s.dice.number(2) == 0))
		return true
	case (q.Has("watch") || q.Has("continue")) && s.dice.roll(Gone, 20):
		writeStatus(w, e, expired())
		return true
	default:
		return false
	}
	answer.Details.RetryAfterSeconds = int32(s.dice.number(4)) // 0: it does not say
	writeStatus(w, e, answer)
	return true
}

// wait returns early when the request ends.
func wait(r *http.Request, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}
