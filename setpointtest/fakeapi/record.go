// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import "slices"

// note records a request.
func (s *Server) note(q *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record = append(s.record, *q)
}

// Requests returns the requests for resources, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.record)
}

// Requests returns the requests for the resource, in order.
func (r *Resource) Requests() []Request {
	return slices.DeleteFunc(r.Server.Requests(), func(q Request) bool { return q.Resource != r.Resource })
}

// Calls returns the requests other than lists and watches, as in
// "delete /api/v1/namespaces/ns/pods/web".
func (s *Server) Calls() []string { return calls(s.Requests()) }

// Calls returns what was asked of the resource besides lists and watches.
func (r *Resource) Calls() []string { return calls(r.Requests()) }

func calls(requests []Request) []string {
	var all []string
	for _, q := range requests {
		if q.Verb != "list" && q.Verb != "watch" {
			all = append(all, q.String())
		}
	}
	return all
}

// Forget empties the record of requests.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record = nil
}
