// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Selection is which objects of a resource are meant, and in which form.
type Selection struct {
	Namespace string // "" is all
	Labels    string // a label selector, "" is all
	Fields    string // a field selector, "" is all

	// JSONOnly is set for types that have no protobuf form.
	JSONOnly bool
	// MetadataOnly asks for PartialObjectMetadata instead of the objects.
	MetadataOnly bool
	// WithoutManagedFields asks the server to leave metadata.managedFields out, which are
	// half of many objects. It is a wish: servers that cannot do so send them.
	WithoutManagedFields bool
	// Limit is the largest object read, in bytes. 0 is wire.DefaultLimit.
	Limit int
}

// ListOptions says what a list may answer. The words are the API server's.
type ListOptions struct {
	ResourceVersion      string
	ResourceVersionMatch string
	PageSize             int64 // 0 is all in one
	Continue             string
}

// WatchOptions says where a watch begins. The words are the API server's.
type WatchOptions struct {
	ResourceVersion   string
	Timeout           time.Duration // the server ends the watch after it
	SendInitialEvents bool          // begin with the state, as a watch list
}

// asMetadata asks for an object's metadata instead of the object.
const asMetadata = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// metadataTypes asks for an object's metadata, and for the object, in JSON, of a server that
// has no such form: what is asked for is read out of either. Aggregated servers that are
// built without it answer 406 to a request that takes nothing else.
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

// List hands out the encoded objects of a resource as they arrive. item's bytes
// are valid during the call.
//
// API servers compress large lists with gzip, which the transport asks for and
// undoes, unless the configuration has DisableCompression (client-go heeds it with
// TLS only): the limit is on what comes out.
func (c *Client) List(ctx context.Context, r object.Resource, s Selection, o ListOptions,
	item func(e wire.Encoding, raw []byte) error) (wire.ListMeta, error) {
	stream, err := c.stream(ctx, r, s, func(s Selection) *Request {
		request := s.request(c, r, true).
			Param("resourceVersion", o.ResourceVersion).
			Param("resourceVersionMatch", o.ResourceVersionMatch).
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
	reader   *wire.WatchReader
	stream   *Stream
}

// Next returns the next event. See [wire.WatchReader.Next].
func (w *WatchStream) Next() (wire.Event, error) { return w.reader.Next() }

// Close ends the watch. A Next that waits returns an error.
func (w *WatchStream) Close() error { return w.stream.Body.Close() }

// Watch begins a watch. It ends when ctx does. It is asked for once: a server that asks to
// be tried again later is an error, apierrors.SuggestsClientDelay says when, so that who
// watches can say what it waits for.
func (c *Client) Watch(ctx context.Context, r object.Resource, s Selection, o WatchOptions) (*WatchStream, error) {
	stream, err := c.stream(ctx, r, s, func(s Selection) *Request {
		request := s.request(c, r, false).
			Param("watch", "true").
			Param("allowWatchBookmarks", "true").
			Param("resourceVersion", o.ResourceVersion)
		if o.Timeout > 0 {
			request.Param("timeoutSeconds", strconv.Itoa(int(o.Timeout.Seconds())))
		}
		if o.SendInitialEvents {
			request.Param("sendInitialEvents", "true").Param("resourceVersionMatch", "NotOlderThan")
		}
		request.once = true
		return request
	})
	if err != nil {
		return nil, err
	}
	return &WatchStream{
		Encoding: stream.Encoding,
		reader:   wire.NewWatchReader(stream.Body, stream.Encoding, s.Limit),
		stream:   stream,
	}, nil
}
