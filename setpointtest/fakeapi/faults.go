// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/pause"
)

// Faults is what goes wrong on demand: with the requests for one resource, or with all.
type Faults struct {
	server *Server

	hooks   sync.Mutex
	refuse  func(*Request) *metav1.Status
	lose    func(*Request) bool
	latency func(*Request) time.Duration
	next    []*planned
	held    bool                 // watches send nothing; guarded by the server's mu
	lag     func() time.Duration // of watches, nil for none; guarded by the server's mu
}

// planned is a fault of the next requests of a verb.
type planned struct {
	verb   string
	left   int
	status *metav1.Status // nil: the answer is lost
}

// Before sets a function that is called with each request before it is carried out. A
// Status that it returns is the answer, and nothing is carried out. nil unsets it.
//
// A resource's own function is called after the server's. The function may use the
// server, and is called by several requests at once.
func (f *Faults) Before(answer func(*Request) *metav1.Status) {
	f.hooks.Lock()
	defer f.hooks.Unlock()
	f.refuse = answer
}

// LoseAnswer sets a function that is called after each request but a watch. If it returns
// true, the connection breaks before the answer is sent.
func (f *Faults) LoseAnswer(lose func(*Request) bool) {
	f.hooks.Lock()
	defer f.hooks.Unlock()
	f.lose = lose
}

// Delay sets a function that returns how long a request waits before it is carried out.
func (f *Faults) Delay(latency func(*Request) time.Duration) {
	f.hooks.Lock()
	defer f.hooks.Unlock()
	f.latency = latency
}

// RefuseNext answers the next n requests of a verb with a status, after those that are
// planned already. The verb "*" is any.
func (f *Faults) RefuseNext(n int, verb string, status *metav1.Status) {
	f.plan(&planned{verb, n, status})
}

// LoseNext carries out the next n requests of a verb and breaks the connection before
// the answer is sent.
func (f *Faults) LoseNext(n int, verb string) { f.plan(&planned{verb: verb, left: n}) }

func (f *Faults) plan(p *planned) {
	f.hooks.Lock()
	defer f.hooks.Unlock()
	f.next = append(f.next, p)
}

// HoldWatches has watches send nothing but what they begin with, until it is called with
// false: caches fall behind.
func (f *Faults) HoldWatches(hold bool) {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	f.held = hold
	f.server.wake()
}

// holds reports whether the watches of a resource are held. mu is held.
func (s *Server) holds(r *Resource) bool { return s.Faults.held || r.Faults.held }

// LagWatches sets a function that returns how long after a change the watches send it. A
// watch sends the changes in order, so a change also waits for the one before it. Lists,
// and what a watch begins with, do not lag. nil unsets the function for later changes.
//
// The lag of a resource comes on top of that of the server. The server is locked while it
// calls the function, which must not use the server.
func (f *Faults) LagWatches(lag func() time.Duration) {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	f.lag = lag
}

// shown returns when watches send a change that is made now, and has them look for it
// then. mu is held.
func (s *Server) shown(r *Resource) time.Time {
	var late time.Duration
	for _, f := range []*Faults{&s.Faults, &r.Faults} {
		if f.lag != nil {
			late += f.lag()
		}
	}
	if late <= 0 {
		return time.Time{}
	}
	time.AfterFunc(late, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.wake()
	})
	return time.Now().Add(late)
}

// CutConnections breaks all connections, and so all requests that wait for an answer. New
// ones are taken.
func (s *Server) CutConnections() {
	s.mu.Lock()
	for _, cut := range s.open {
		cut(errCut)
	}
	s.mu.Unlock()
	if s.loopback != nil {
		s.loopback.CloseClientConnections()
	}
}

// before has a request wait as long as is wanted, and returns what to answer instead of
// carrying it out.
func (r *Resource) before(q *Request) *metav1.Status {
	for _, f := range r.levels() {
		f.hooks.Lock()
		latency, refuse := f.latency, f.refuse
		f.hooks.Unlock()
		if latency != nil {
			wait(q, latency(q))
		}
		if refuse != nil {
			if status := refuse(q); status != nil {
				return status
			}
		}
		if status := f.take(q, func(p *planned) bool { return p.status != nil }); status != nil {
			return status.status
		}
	}
	return nil
}

// losesAnswer reports whether the answer to a request is lost.
func (r *Resource) losesAnswer(q *Request) bool {
	for _, f := range r.levels() {
		f.hooks.Lock()
		lose := f.lose
		f.hooks.Unlock()
		if lose != nil && lose(q) || f.take(q, func(p *planned) bool { return p.status == nil }) != nil {
			return true
		}
	}
	return false
}

// levels are the faults of the server and those of the resource, which a test may have
// withdrawn since the request came.
func (r *Resource) levels() []*Faults { return []*Faults{&r.Server.Faults, &r.Faults} }

// take uses up a planned fault.
func (f *Faults) take(q *Request, fits func(*planned) bool) *planned {
	f.hooks.Lock()
	defer f.hooks.Unlock()
	i := slices.IndexFunc(f.next, func(p *planned) bool { return fits(p) && (p.verb == "*" || p.verb == q.Verb) })
	if i < 0 {
		return nil
	}
	p := f.next[i]
	if p.left--; p.left <= 0 {
		f.next = slices.Delete(f.next, i, i+1)
	}
	return p
}

// wait returns early when the request ends.
func wait(q *Request, d time.Duration) {
	if d > 0 {
		pause.For(q.HTTP.Context(), d)
	}
}
