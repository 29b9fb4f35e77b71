// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/sink"
)

// signingKey is what requests are signed with.
const signingKey = "the key of a test"

// runHeader says which process a request is from.
const runHeader = "X-Run"

// The ways in which a receiver fails.
const (
	failsWith500   = "500"
	failsWith429   = "429, Retry-After: 0"
	failsWith429s  = "429, Retry-After: 1"
	failsWith413   = "413 for more than one"
	failsWith503   = "503"
	failsBefore    = "connection closed before the body was read"
	failsAfterward = "connection closed after the events were taken"
)

// receivers are webhooks, one for each path, which fail a third of the time.
type receivers struct {
	*httptest.Server
	ledger *ledger

	mu       sync.Mutex
	random   *rand.Rand
	well     bool           // nothing fails any more
	requests map[string]int // by what became of them
	latest   int            // the run that sent last
	news     int            // events that arrived for the first time
	wrong    []string
	changed  chan struct{} // closed when something arrives, and made anew
}

func newReceivers(t *testing.T, l *ledger, seed uint64) *receivers {
	t.Helper()
	r := &receivers{ledger: l, random: rand.New(rand.NewPCG(seed, 1000)), requests: map[string]int{}, changed: make(chan struct{})}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// failure says how a request fails, or "".
func (r *receivers) failure() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.well || r.random.IntN(3) > 0 {
		return ""
	}
	switch n := r.random.IntN(100); {
	case n < 1 && r.requests[failsWith429s] < *kills: // each costs a second
		return failsWith429s
	case n < 20:
		return failsWith429
	case n < 40:
		return failsWith500
	case n < 60:
		return failsBefore
	case n < 80:
		return failsWith413
	default:
		return failsAfterward
	}
}

func (r *receivers) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	failure := r.failure()
	switch failure {
	case failsWith500:
		http.Error(w, "come again", http.StatusInternalServerError)
	case failsWith429, failsWith429s:
		w.Header().Set("Retry-After", failure[len(failure)-1:])
		http.Error(w, "not so fast", http.StatusTooManyRequests)
	case failsBefore:
		cut(w)
	default:
		failure = r.read(w, request, failure)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if failure == "" {
		failure = "taken"
	}
	r.requests[failure]++
}

// read reads a request to its end, and returns how it was answered.
func (r *receivers) read(w http.ResponseWriter, request *http.Request, failure string) string {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return "killed while it was sent"
	}
	if err := sink.Verify([]byte(signingKey), request.Header.Get(sink.SignatureHeader), body, time.Now(), time.Minute); err != nil {
		r.complain(err.Error())
	}
	for _, c := range canaries {
		if bytes.Contains(body, []byte(c)) {
			r.complain("a hidden value was sent")
		}
	}
	events, err := cloudEvents(body, strings.Contains(request.Header.Get("Content-Type"), "batch"))
	if err != nil {
		r.complain(err.Error())
	}
	switch {
	case failure == failsWith413 && len(events) > 1:
		http.Error(w, "too many at once", http.StatusRequestEntityTooLarge)
		return failure
	case failure == failsWith413: // which would be for good
		http.Error(w, "come again", http.StatusServiceUnavailable)
		return failsWith503
	}
	r.take(request, events)
	if failure == failsAfterward {
		cut(w)
		return failure
	}
	w.WriteHeader(http.StatusAccepted)
	return ""
}

func (r *receivers) take(request *http.Request, events []*event.Event) {
	run, err := strconv.Atoi(request.Header.Get(runHeader))
	if err != nil {
		r.complain(err.Error())
	}
	news := 0
	for _, e := range events {
		a := arrival{id: e.ID, verb: e.Verb, uid: e.UID, version: e.Version, run: run}
		if r.ledger.got(request.URL.Path, thing{e.Kind.String(), e.Key}, a) {
			news++
		}
		if e.Object() == nil && !e.Stale {
			r.complain("an event without an object: " + e.Key.String())
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = max(r.latest, run)
	r.news += news
	close(r.changed)
	r.changed = make(chan struct{})
}

// cut closes the connection without an answer.
func cut(w http.ResponseWriter) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	c, _, err := hijacker.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func cloudEvents(body []byte, batch bool) ([]*event.Event, error) {
	type cloud struct {
		ID   string          `json:"id"`
		Data json.RawMessage `json:"data"`
	}
	list := make([]cloud, 1)
	into := any(&list[0])
	if batch {
		into = &list
	}
	if err := json.Unmarshal(body, into); err != nil {
		return nil, err
	}
	var events []*event.Event
	for _, c := range list {
		e, err := event.Decode(c.Data)
		if err != nil {
			return nil, err
		}
		if e.ID != c.ID {
			return nil, fmt.Errorf("an event with the IDs %s and %s", e.ID, c.ID)
		}
		events = append(events, e)
	}
	return events, nil
}

func (r *receivers) complain(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.wrong) < 10 {
		r.wrong = append(r.wrong, text)
	}
}

// heal ends the failures.
func (r *receivers) heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.well = true
}

// until waits until something holds of the run that sent last, or an event that is new
// has come; it reports whether it did in time.
func (r *receivers) until(within time.Duration, holds func(latest, news int) bool) bool {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for {
		r.mu.Lock()
		changed, latest, news := r.changed, r.latest, r.news
		r.mu.Unlock()
		if holds(latest, news) {
			return true
		}
		select {
		case <-changed:
		case <-deadline.C:
			return false
		}
	}
}

func (r *receivers) arrivedFirst() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.news
}

// figures says what became of requests, and what was wrong with some.
func (r *receivers) figures() (text string, wrong []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, taken := 0, r.requests["taken"]
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(r.requests)) {
		all += r.requests[what]
		parts = append(parts, fmt.Sprintf("%s: %d", what, r.requests[what]))
	}
	return fmt.Sprintf("%d requests, %.0f %% failed; %s", all, 100*float64(all-taken)/float64(max(all, 1)), strings.Join(parts, "; ")), slices.Clone(r.wrong)
}
