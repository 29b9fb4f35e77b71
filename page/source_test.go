// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/page"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var noon = time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)

// The kinds that the fake server serves.
var (
	deployments = object.Resource{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true}
	replicaSets = object.Resource{Group: "apps", Version: "v1", Plural: "replicasets", Kind: "ReplicaSet", Namespaced: true}
	pods        = object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}
	events      = object.Resource{Version: "v1", Plural: "events", Kind: "Event", Namespaced: true}
	nodes       = object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"}
)

// source is a source of what a test has put there.
type source struct {
	overview manager.Overview
	others   []page.State
	unread   []page.Unread
	err      error
	record   *runs.Record
	states   []runs.KeyState // of any object
	client   *client.Client
	resource map[string]*fakeapi.Resource // by plural
	asked    int                          // for the overview
}

func (s *source) Overviews(context.Context) (page.States, error) {
	s.asked++
	return page.States{Known: append([]page.State{{Overview: s.overview}}, s.others...), Unread: s.unread}, s.err
}
func (s *source) Own() page.States { return page.States{Known: []page.State{{Overview: s.overview}}} }
func (s *source) Record() gather.Record {
	return gather.WithLoops(gather.Local(s.record), func(runs.Object) []runs.KeyState { return s.states })
}
func (s *source) Client() *client.Client { return s.client }

// newSource returns a source with an empty cluster and an empty record.
func newSource(t testing.TB) *source {
	t.Helper()
	server := fakeapi.New()
	s := &source{resource: map[string]*fakeapi.Resource{}, overview: manager.Overview{AsOf: noon, Instance: "node-2", State: "working"}}
	for _, r := range []object.Resource{deployments, replicaSets, pods, events, nodes} {
		s.resource[r.Plural] = server.Serve(r)
	}
	var err error
	if s.record, err = runs.New(runs.LeastBytes); err != nil {
		t.Fatal(err)
	}
	if s.client, err = client.New(s.resource["pods"].Config()); err != nil {
		t.Fatal(err)
	}
	return s
}

// get returns the answer of a page.
func get(t testing.TB, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w
}

func newPage(s page.Source) *page.Page { return page.New(s, page.Options{}) }
