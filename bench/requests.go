// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// requestCounts are numbers of requests by verb and resource, such as "PATCH pods/status". Watches are left out:
// a server counts them when they end.
type requestCounts map[string]float64

// since returns the requests that were counted after before.
func (c requestCounts) since(before requestCounts) requestCounts {
	d := requestCounts{}
	for what, n := range c {
		if n != before[what] {
			d[what] = n - before[what]
		}
	}
	return d
}

// total returns the sum of all counts.
func (c requestCounts) total() (n float64) {
	for _, count := range c {
		n += count
	}
	return n
}

// String lists the counts, the largest first.
func (c requestCounts) String() string {
	var parts []string
	order := func(a, b string) int { return cmp.Or(cmp.Compare(c[b], c[a]), cmp.Compare(a, b)) }
	for _, what := range slices.SortedFunc(maps.Keys(c), order) {
		parts = append(parts, fmt.Sprintf("%.0f × %s", c[what], what))
	}
	return strings.Join(parts, ", ")
}

// labelOf finds the labels of a series of metrics.
var labelOf = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)

// served returns what an API server has counted so far. metrics is its page for Prometheus.
func served(metrics []byte) (requestCounts, error) {
	c := requestCounts{}
	lines := bufio.NewScanner(bytes.NewReader(metrics))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		series, found := strings.CutPrefix(lines.Text(), "apiserver_request_total{")
		if !found {
			continue
		}
		list, value, _ := strings.Cut(series, "} ")
		labels := map[string]string{}
		for _, l := range labelOf.FindAllStringSubmatch(list, -1) {
			labels[l[1]] = l[2]
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("reading the requests that the server counted: %w", err)
		}
		if verb := labels["verb"]; verb != "WATCH" && labels["resource"] != "" {
			c[nameOfRequest(verb, labels["resource"], labels["subresource"])] += n
		}
	}
	return c, lines.Err()
}

func nameOfRequest(verb, resource, subresource string) string {
	if subresource != "" {
		resource += "/" + subresource
	}
	return verb + " " + resource
}

// ownRequests counts the requests of this process, so that they can be taken off those that the server counted.
type ownRequests struct {
	mu     sync.Mutex
	counts requestCounts
}

// countingTransport counts the requests of a client.
type countingTransport struct {
	http.RoundTripper
	own *ownRequests
}

// wrap is the WrapTransport of a client's configuration.
func (o *ownRequests) wrap(t http.RoundTripper) http.RoundTripper { return countingTransport{t, o} }

// RoundTrip counts a request and sends it.
func (t countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if what := whatIsRequested(r); what != "" {
		t.own.mu.Lock()
		t.own.counts[what]++
		t.own.mu.Unlock()
	}
	return t.RoundTripper.RoundTrip(r)
}

func (o *ownRequests) soFar() requestCounts {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.counts)
}

// whatIsRequested returns the name under which a server counts a request, and "" for one that is not counted here.
func whatIsRequested(r *http.Request) string {
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch { // the prefix, with group and version
	case segments[0] == "api" && len(segments) > 2:
		segments = segments[2:]
	case segments[0] == "apis" && len(segments) > 3:
		segments = segments[3:]
	default:
		return ""
	}
	if segments[0] == "namespaces" && len(segments) > 2 {
		segments = segments[2:]
	}
	name, subresource := len(segments) > 1, ""
	if len(segments) > 2 {
		subresource = segments[2]
	}
	verb := r.Method
	switch {
	case verb == http.MethodGet && r.URL.Query().Get("watch") != "":
		return ""
	case verb == http.MethodGet && !name:
		verb = "LIST"
	case verb == http.MethodDelete && !name:
		verb = "DELETECOLLECTION"
	case verb == http.MethodPatch && strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch"):
		verb = "APPLY"
	}
	return nameOfRequest(verb, segments[0], subresource)
}

// managersRequests returns how many requests the manager has sent so far: those that the server counted, less those of
// this process. The server's requests to itself are among them. They are few.
func (s *scene) managersRequests(ctx context.Context) (requestCounts, error) {
	own := s.own.soFar()
	metrics, err := s.plain.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of the API server: %w", err)
	}
	counts, err := served(metrics)
	return counts.since(own), err
}
