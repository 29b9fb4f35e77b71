// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/gzip"
	"errors"
	"net/http"
	"strings"
	"sync"
)

// compressing answers a watch that begins with the state as API servers since 1.37 do: compressed, and what was
// written between two flushes is a gzip stream of its own.
// Source: k8s.io/apiserver/pkg/endpoints/handlers, perFlushGzipWriter.
type compressing struct{ http.Handler }

func (c compressing) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.URL.Query().Get("sendInitialEvents") == "true" && strings.Contains(request.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		w = &compressedAnswer{ResponseWriter: w}
	}
	c.Handler.ServeHTTP(w, request)
}

// gzipWriters have the level that the API server has. Each has some 800 KB.
var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

type compressedAnswer struct {
	http.ResponseWriter

	gzip *gzip.Writer // nil: nothing was written since the last flush
}

func (a *compressedAnswer) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if a.gzip == nil {
		a.gzip = gzipWriters.Get().(*gzip.Writer)
		a.gzip.Reset(a.ResponseWriter)
	}
	return a.gzip.Write(b)
}

// FlushError is what http.ResponseController calls.
func (a *compressedAnswer) FlushError() error {
	if a.gzip != nil {
		// The end of a stream alone would not do: a reader of gzip waits there for the next stream before it returns what it has.
		err := errors.Join(a.gzip.Flush(), a.gzip.Close())
		gzipWriters.Put(a.gzip)
		a.gzip = nil
		if err != nil {
			return err
		}
	}
	return http.NewResponseController(a.ResponseWriter).Flush()
}
