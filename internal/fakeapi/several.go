// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"net/http"
	"net/http/httptest"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/object"
)

// Several are servers that listen nowhere, of one resource each, which look like one
// server from outside. Each counts its own versions.
type Several []*Server

// Config is what a client needs.
func (s Several) Config() *rest.Config { return &rest.Config{Host: "http://in-memory", Transport: s} }

// RoundTrip implements http.RoundTripper: the server that knows what a path names
// answers, and the first one where none does.
func (s Several) RoundTrip(r *http.Request) (*http.Response, error) {
	if isDiscovery(r.URL.Path) {
		return s.discover(r)
	}
	for _, server := range s {
		if _, _, ok := server.parse(r.URL.Path); ok {
			return server.RoundTrip(r)
		}
	}
	return s[0].RoundTrip(r)
}

// discover answers with the resources of all servers.
func (s Several) discover(r *http.Request) (*http.Response, error) {
	var resources []object.Resource
	for _, server := range s {
		resources = append(resources, server.resource)
	}
	answer := httptest.NewRecorder()
	writeJSON(answer, http.StatusOK, discovery(r.URL.Path, resources...))
	return answer.Result(), nil
}
