// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/lease"
)

// errStandby is why a manager that stands by does not write.
var errStandby = errors.New("this process does not hold the lease: another one may be at work")

// fence is on the way of every write to the server, below everything that may take time,
// such as getting a token: it lets through what is sent while the lease is held for
// certain, and breaks what is under way when the term ends.
type fence struct {
	term atomic.Pointer[lease.Term] // nil: standing by
}

// wrap is for rest.Config.Wrap.
func (f *fence) wrap(next http.RoundTripper) http.RoundTripper { return &fencedTransport{f, next} }

type fencedTransport struct {
	fence *fence
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *fencedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions {
		return t.next.RoundTrip(r)
	}
	term := t.fence.term.Load()
	if term == nil {
		return nil, refuse(r, errStandby)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	forget := context.AfterFunc(term.Context(), func() { cancel(context.Cause(term.Context())) })
	end := func() { forget(); cancel(nil) }
	// The last thing before the connection: whatever took time before is in the past.
	if err := term.Certain(); err != nil {
		end()
		return nil, refuse(r, err)
	}
	response, err := t.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		end()
		return nil, err
	}
	response.Body = &endingBody{ReadCloser: response.Body, end: sync.OnceFunc(end)}
	return response, nil
}

// refuse keeps a RoundTripper's promise to close the body.
func refuse(r *http.Request, why error) error {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return &client.NotSentError{Cause: why}
}

// endingBody does something when it is closed.
type endingBody struct {
	io.ReadCloser
	end func()
}

func (b *endingBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
