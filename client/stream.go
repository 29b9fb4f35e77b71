// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/setpoint-io/setpoint/internal/pause"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Selection selects objects of a resource, and the form in which the server sends them.
type Selection struct {
	Namespace string // "" is all
	Labels    string // a label selector, "" is all
	Fields    string // a field selector, "" is all

	// JSONOnly is set for types that have no protobuf form.
	JSONOnly bool
	// MetadataOnly requests PartialObjectMetadata instead of the objects.
	MetadataOnly bool
	// WithoutManagedFields asks the server to leave out metadata.managedFields, which are
	// half of many objects. Servers that cannot leave them out send them.
	WithoutManagedFields bool
	// Limit is the largest object read, in bytes. 0 is wire.DefaultLimit.
	Limit int
}

// ListOptions are the options of a list, with the names of the API.
type ListOptions struct {
	ResourceVersion string
	PageSize        int64 // 0 is all in one
	Continue        string
}

// WatchOptions are the options of a watch, with the names of the API.
type WatchOptions struct {
	ResourceVersion   string
	Timeout           time.Duration // the server ends the watch after it
	SendInitialEvents bool          // begin with the state, as a watch list
	NoBookmarks       bool          // the server sends no bookmarks

	// BeforeRead is called before each read from the connection, which may wait, by the goroutine that
	// calls Next. Between two calls Next returns events that have arrived already. It may be nil.
	BeforeRead func()

	// Gather is called before a read that follows one which had to wait for events. It returns how long events may wait in the
	// connection, so that they are read together: 0 or less is not at all. What has come meanwhile is read without a pause. It
	// may be nil.
	Gather func() time.Duration
}

// asMetadata requests an object's metadata instead of the object.
const asMetadata = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// metadataTypes requests an object's metadata, or the whole object in JSON from a server
// that has no such form. The metadata is read from either. Aggregated servers that are built
// without it answer 406 to a request that accepts nothing else.
var metadataTypes = []string{wire.Protobuf.MediaType() + asMetadata, wire.JSON.MediaType() + asMetadata, wire.JSON.MediaType()}

func (s *Selection) request(c *Client, r object.Resource, list bool) *Request {
	request := c.Request(http.MethodGet).Resource(r).Namespace(s.Namespace).
		Param("labelSelector", s.Labels).Param("fieldSelector", s.Fields)
	drop := ""
	if s.WithoutManagedFields {
		drop = dropManagedFields
	}
	if s.MetadataOnly {
		as := asMetadata
		if list {
			as = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
		}
		return request.Accept(wire.Protobuf.MediaType()+as+drop, wire.JSON.MediaType()+as+drop, wire.JSON.MediaType()+drop)
	}
	if s.JSONOnly {
		return request.Accept(wire.JSON.MediaType() + drop)
	}
	return request.Accept(wire.Protobuf.MediaType()+drop, wire.JSON.MediaType()+drop)
}

// List calls item with the encoded bytes of each object of a resource, as they arrive. The
// bytes are valid during the call.
//
// API servers compress large lists with gzip, which the transport requests and decompresses,
// unless the configuration has DisableCompression (which client-go honours with TLS only). The
// limit is on the decompressed bytes.
func (c *Client) List(ctx context.Context, r object.Resource, s Selection, o ListOptions,
	item func(e wire.Encoding, raw []byte) error) (wire.ListMeta, error) {
	stream, err := c.stream(ctx, r, s, func(s Selection) *Request {
		request := s.request(c, r, true).
			Param("resourceVersion", o.ResourceVersion).
			Param("continue", o.Continue)
		if o.PageSize > 0 {
			request.Param("limit", strconv.FormatInt(o.PageSize, 10))
		}
		return request
	})
	if err != nil {
		return wire.ListMeta{}, err
	}
	defer stream.Body.Close()
	return wire.List(stream.Body, stream.Encoding, s.Limit, func(raw []byte) error {
		return item(stream.Encoding, raw)
	})
}

// WatchStream is a running watch. Next is called by one goroutine; Close may be
// called by any.
type WatchStream struct {
	Encoding wire.Encoding
	// Compressed is set if the server compresses the events. API servers since 1.37 compress a
	// watch that begins with the state, each event on its own after the state.
	Compressed bool
	reader     *wire.WatchReader
	stream     *Stream
}

// Next returns the next event. See [wire.WatchReader.Next].
func (w *WatchStream) Next() (wire.Event, error) { return w.reader.Next() }

// Close ends the watch. A Next that waits returns an error.
func (w *WatchStream) Close() error { return w.stream.Body.Close() }

// Watch begins a watch, which ends when ctx does. Watch sends its request once: an answer with
// a Retry-After is an error, so that the caller can log why it waits. The time is that of
// apierrors.SuggestsClientDelay.
func (c *Client) Watch(ctx context.Context, r object.Resource, s Selection, o WatchOptions) (*WatchStream, error) {
	stream, err := c.stream(ctx, r, s, func(s Selection) *Request {
		request := s.request(c, r, false).
			Param("watch", "true").
			Param("resourceVersion", o.ResourceVersion)
		if !o.NoBookmarks {
			request.Param("allowWatchBookmarks", "true")
		}
		if o.Timeout > 0 {
			request.Param("timeoutSeconds", strconv.Itoa(int(o.Timeout.Seconds())))
		}
		if o.SendInitialEvents {
			request.Param("sendInitialEvents", "true").Param("resourceVersionMatch", "NotOlderThan")
		}
		request.options.noRetries = true
		return request
	})
	if err != nil {
		return nil, err
	}
	var body io.Reader = stream.Body
	if o.BeforeRead != nil || o.Gather != nil {
		body = &pacedReader{ctx: ctx, in: body, before: o.BeforeRead, gather: o.Gather}
	}
	return &WatchStream{
		Encoding:   stream.Encoding,
		Compressed: stream.Compressed,
		reader:     wire.NewWatchReader(body, stream.Encoding, s.Limit),
		stream:     stream,
	}, nil
}

// pacedReader calls a function before each read, and has events wait before it reads them.
type pacedReader struct {
	ctx    context.Context
	in     io.Reader
	before func()
	gather func() time.Duration
	waited bool // a read has waited since the last pause
	all    bool // the last read has read all there was
}

// waits is how long a read takes, at least, that has waited for the connection. One that takes as long for another reason, on a busy
// machine, costs a pause.
const waits = time.Millisecond

func (r *pacedReader) Read(p []byte) (int, error) {
	if r.before != nil {
		r.before()
	}
	if r.gather == nil {
		return r.in.Read(p)
	}
	if r.waited && r.all {
		r.waited = false
		if d := r.gather(); d > 0 {
			pause.For(r.ctx, d)
		}
	}
	began := time.Now()
	n, err := r.in.Read(p)
	// The state of a connection does not say whether there is more: over HTTP/1.1 a read returns one chunk.
	r.all = n < len(p)
	r.waited = r.waited || time.Since(began) >= waits // an event may take several reads, of which the first waits
	return n, err
}
