// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/setpoint-io/setpoint/wire"
)

// replay is an API server of one kind, as far as an informer can see: lists, paged
// lists, watches, watches that begin with the state, and versions that have
// expired. What it answers stands on a tape; only resourceVersions are written
// into it, so that it takes the machine next to no time.
//
// It is an http.Handler, for a server on a socket, and an http.RoundTripper, for a
// client in the same process where even a socket is too much.
type replay struct {
	tape *tape
	n    int // objects of the tape that there are

	// Lists are all that it offers: watches that begin with the state are refused.
	listsOnly bool

	mu       sync.Mutex
	moved    *sync.Cond // when current or oldest has changed, and when a watch is closed
	versions []uint64   // of the objects
	current  uint64     // of the newest change
	oldest   uint64     // a watch from before it has expired
	endless  bool       // changes are made as fast as they are read
}

func newReplay(t *tape, n int) (*replay, error) {
	if n > len(t.objects) {
		return nil, fmt.Errorf("replaying %d %s: the tape has %d", n, t.kind.name, len(t.objects))
	}
	r := &replay{tape: t, n: n, versions: make([]uint64, n)}
	r.moved = sync.NewCond(&r.mu)
	for i := range r.versions {
		r.versions[i] = firstVersion + uint64(i)
	}
	r.current = firstVersion + uint64(n)
	r.oldest = r.current
	return r, nil
}

// changed is which object changed to get a version: all have their turn, in an
// order that has nothing to do with where they stand.
func (r *replay) changed(version uint64) int {
	return int((version * 7919) % uint64(r.n))
}

// publish makes changes, sends them to the watches, and returns the version of the last
// one.
func (r *replay) publish(changes int) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.change(changes)
	return r.current
}

// change is called with mu held.
func (r *replay) change(changes int) {
	for range changes {
		r.current++
		r.versions[r.changed(r.current)] = r.current
	}
	r.moved.Broadcast()
}

// expire makes changes without events, and ends all watches: what was before is
// forgotten. It returns the version of the last change.
func (r *replay) expire(changes int) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.change(changes)
	r.current++ // a change of an object that is not there any more
	r.oldest = r.current
	return r.current
}

// run makes changes as fast as they are read, or no more of them.
func (r *replay) run(endless bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endless = endless
	r.moved.Broadcast()
}

func (r *replay) newest() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

// state is a copy of what there is.
func (r *replay) state() (versions []uint64, current uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.versions), r.current
}

// answer is what a request gets.
type answer struct {
	code        int
	contentType string
	body        io.ReadCloser
}

func (r *replay) answer(request *http.Request) answer {
	query := request.URL.Query()
	k := r.tape.kind
	switch path := request.URL.Path; {
	case path == controlPath:
		return r.control(query.Get("publish"), query.Get("expire"))
	case k.resource.Group != "" && path == "/apis/"+k.resource.APIVersion():
		return text(http.StatusOK, wire.JSON, fmt.Appendf(nil,
			`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":%q,"resources":[{"name":%q,"singularName":"","namespaced":%t,"kind":%q,"verbs":["list","watch"]}]}`,
			k.resource.APIVersion(), k.resource.Plural, k.resource.Namespaced, k.resource.Kind))
	case !strings.HasSuffix(path, "/"+k.resource.Plural):
		return refuse(http.StatusNotFound, "NotFound", "this server has "+k.resource.Plural+" and nothing else")
	case k.encoding == wire.Protobuf && !strings.Contains(request.Header.Get("Accept"), wire.Protobuf.MediaType()):
		return refuse(http.StatusNotAcceptable, "NotAcceptable", "this server speaks protobuf for "+k.resource.Plural)
	case query.Get("watch") == "true":
		return r.watch(query.Get("resourceVersion"), query.Get("sendInitialEvents") == "true")
	default:
		return r.list(query.Get("resourceVersion"), query.Get("limit"), query.Get("continue"))
	}
}

// controlPath is where the measured process says what should happen next.
const controlPath = "/replay"

func (r *replay) control(publish, expire string) answer {
	changes, err := strconv.Atoi(publish + expire) // one of them is empty
	if err != nil {
		return refuse(http.StatusBadRequest, "BadRequest", err.Error())
	}
	act := r.publish
	if expire != "" {
		act = r.expire
	}
	return text(http.StatusOK, wire.JSON, strconv.AppendUint(nil, act(changes), 10))
}

// ServeHTTP makes replay an http.Handler.
func (r *replay) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	a := r.answer(request)
	defer a.body.Close()
	stop := closeWith(request, a.body)
	defer stop()
	w.Header().Set("Content-Type", a.contentType)
	w.WriteHeader(a.code)
	flush := http.NewResponseController(w)
	buffer := make([]byte, chunk)
	for {
		if flush.Flush() != nil { // a watcher waits for the headers before the first event
			return
		}
		n, err := a.body.Read(buffer)
		if _, gone := w.Write(buffer[:n]); gone != nil || err != nil {
			return
		}
	}
}

// RoundTrip makes replay an http.RoundTripper.
func (r *replay) RoundTrip(request *http.Request) (*http.Response, error) {
	a := r.answer(request)
	return &http.Response{
		Status: http.StatusText(a.code), StatusCode: a.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {a.contentType}}, ContentLength: -1, Request: request,
		Body: closing{a.body, closeWith(request, a.body)},
	}, nil
}

// closing is a body that ends with its request as well.
type closing struct {
	io.ReadCloser
	stop func() bool
}

func (c closing) Close() error {
	c.stop()
	return c.ReadCloser.Close()
}
