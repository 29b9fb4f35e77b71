// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"bufio"
	"context"
	"io"
	"net/http"
)

// RoundTrip implements http.RoundTripper: it has the server answer a request. A watch's
// answer goes on until its body is closed or its context ends. As with net/http's transport,
// a request whose context ends fails with the cause of that end, and so does a body that is
// not read by then.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r = r.Clone(r.Context())
		r.Body = http.NoBody
	}
	body, out := io.Pipe()
	w := &pipeWriter{header: http.Header{}, out: out, begun: make(chan int, 1)}
	w.buffer = bufio.NewWriter(out)
	go s.answerThrough(w, r)
	code, ok := <-w.begun
	if cause := context.Cause(r.Context()); cause != nil {
		return nil, cause
	}
	if !ok {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: body, ContentLength: -1, Request: r,
	}, nil
}

// answerThrough answers a request through a pipe, whose reader learns why the answer ends.
func (s *Server) answerThrough(w *pipeWriter, r *http.Request) {
	ctx := r.Context()
	defer context.AfterFunc(ctx, func() { _ = w.out.CloseWithError(context.Cause(ctx)) })()
	err := io.EOF
	defer func() {
		// net/http's way to break a connection, see ServeHTTP.
		if p := recover(); p == http.ErrAbortHandler { //nolint:errorlint // it is a panic's value, not an error that was wrapped
			err = io.ErrUnexpectedEOF
		} else if p != nil {
			panic(p)
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		_ = r.Body.Close() // a RoundTripper has to, and a failure tells the client nothing
		close(w.begun)
		_ = w.buffer.Flush() // the reader may have gone
		_ = w.out.CloseWithError(err)
	}()
	s.ServeHTTP(w, r)
}

// pipeWriter is a ResponseWriter whose header goes through a channel, and whose body
// goes through a pipe.
type pipeWriter struct {
	header http.Header
	out    *io.PipeWriter
	buffer *bufio.Writer
	begun  chan int // the status, once
	wrote  bool
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(code int) {
	if !w.wrote {
		w.wrote = true
		w.begun <- code
	}
}

func (w *pipeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.buffer.Write(p)
}

// Flush implements http.Flusher.
func (w *pipeWriter) Flush() {
	w.WriteHeader(http.StatusOK)
	_ = w.buffer.Flush() // the next Write fails as well
}
