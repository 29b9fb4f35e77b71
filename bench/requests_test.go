// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRequestsOfTheManagerAreThoseOfTheServerLessThoseOfTheBenchmark(t *testing.T) {
	all, err := served([]byte(`# HELP apiserver_request_total Counter of apiserver requests
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} 7
apiserver_request_total{code="409",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="status",verb="PATCH",version="v1"} 1e+01
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="WATCH",version="v1"} 3
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="",scope="",subresource="/readyz",verb="GET",version=""} 4
apiserver_request_duration_seconds_count{resource="pods",verb="POST"} 9
`))
	if err != nil {
		t.Fatal(err)
	}
	managers := all.since(requestCounts{"PATCH pods/status": 10, "POST pods": 1})
	if got, want := managers.String(), "8 × POST pods"; got != want {
		t.Errorf("requests %q, want %q", got, want)
	}
	if n := managers.since(requestCounts{"POST pods": 3}).total(); n != 5 {
		t.Errorf("%v requests since, want 5", n)
	}
	if _, err := served([]byte(`apiserver_request_total{resource="pods",verb="POST"} many` + "\n")); err == nil {
		t.Error("no error for a count that is no number")
	}
}

func TestRequestsOfTheBenchmarkHaveTheNamesOfTheServer(t *testing.T) {
	own := ownRequests{counts: requestCounts{}}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	client := http.Client{Transport: own.wrap(http.DefaultTransport)}
	for _, c := range []struct{ method, path, contentType, want string }{
		{http.MethodPost, "/api/v1/namespaces/default/pods", "", "POST pods"},
		{http.MethodGet, "/api/v1/namespaces/default/pods?limit=1", "", "LIST pods"},
		{http.MethodGet, "/api/v1/namespaces/default/pods?watch=true", "", ""},
		{http.MethodPatch, "/api/v1/namespaces/default/pods/web/status", "application/merge-patch+json", "PATCH pods/status"},
		{http.MethodPatch, "/apis/apps/v1/namespaces/default/deployments/web", "application/apply-patch+yaml", "APPLY deployments"},
		{http.MethodGet, "/api/v1/nodes/node-1", "", "GET nodes"},
		{http.MethodDelete, "/api/v1/namespaces/default", "", "DELETE namespaces"},
		{http.MethodDelete, "/apis/batch/v1/namespaces/default/jobs", "", "DELETECOLLECTION jobs"},
		{http.MethodGet, "/metrics", "", ""},
	} {
		own.counts = requestCounts{}
		request, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+c.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", c.contentType)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		got := own.soFar().String()
		if want := strings.TrimSpace(c.want); got != want && got != "1 × "+want {
			t.Errorf("%s %s is counted as %q, want %q", c.method, c.path, got, want)
		}
	}
}

func TestProfilesAreWrittenUntilThePartEnds(t *testing.T) {
	begun := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case begun <- struct{}{}:
		default:
		}
		_, _ = w.Write([]byte(r.URL.Path)) //nolint:gosec // the test reads it
	}))
	defer server.Close()
	p := profiler{dir: t.TempDir(), side: setpointSide, base: server.URL}
	end := p.during(t.Context(), "part")
	<-begun
	if err := end(); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"setpoint-part-cpu-1.pb.gz": "/debug/pprof/profile", "setpoint-part-heap.pb.gz": "/debug/pprof/heap"} {
		if text, err := os.ReadFile(filepath.Join(p.dir, file)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v; want %q", file, text, err, want)
		}
	}

	server.Close()
	if err := p.during(t.Context(), "part")(); err == nil {
		t.Error("no error for a manager that serves no profiles")
	}
	if none, flags, err := newProfiler("", setpointSide); err != nil || flags != nil || none.during(t.Context(), "part")() != nil {
		t.Errorf("without a folder: flags %v, %v", flags, err)
	}
}
