// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// source is where a reflector reads from. It is an interface so that the
// reflector can be tested without a server and without time passing.
type source interface {
	// list reads all objects and returns the version of the whole.
	list(ctx context.Context, o client.ListOptions, each func(object.Object) error) (version string, err error)
	watch(ctx context.Context, o client.WatchOptions) (stream, error)
}

// stream is a running watch.
type stream interface {
	// next returns the next event. io.EOF means that the server ended the watch.
	// An error event is returned as an error.
	next() (kind string, o object.Object, err error)
	close() error
}

// undecodable is an object that arrived and cannot be used. What it was is lost;
// only a list can tell.
type undecodable struct{ cause error }

func (e *undecodable) Error() string { return "an object cannot be used: " + e.cause.Error() }
func (e *undecodable) Unwrap() error { return e.cause }

// serverSource reads a kind from an API server.
type serverSource struct {
	client    *client.Client
	kind      schema.GroupVersionKind
	selection client.Selection
	new       func() object.Object
	transform func(object.Object) (object.Object, error) // nil: none
}

func (s *serverSource) list(ctx context.Context, o client.ListOptions, each func(object.Object) error) (string, error) {
	r, err := s.client.Resolve(ctx, s.kind)
	if err != nil {
		return "", err
	}
	meta, err := s.client.List(ctx, r, s.selection, o, func(e wire.Encoding, raw []byte) error {
		o, err := s.decode(r, e, raw)
		if err != nil {
			return &undecodable{err}
		}
		return each(o)
	})
	if err != nil {
		return "", err
	}
	return meta.ResourceVersion, nil
}

func (s *serverSource) decode(r object.Resource, e wire.Encoding, raw []byte) (object.Object, error) {
	o := s.new()
	if err := e.Decode(raw, o); err != nil {
		return nil, err
	}
	if u, ok := o.(*unstructured.Unstructured); ok && u.GetKind() == "" {
		u.SetGroupVersionKind(r.GroupVersionKind())
	}
	// Who wrote which field is half of an object's size and no controller's
	// business.
	o.SetManagedFields(nil)
	if s.transform != nil {
		return s.transform(o)
	}
	return o, nil
}

func (s *serverSource) watch(ctx context.Context, o client.WatchOptions) (stream, error) {
	r, err := s.client.Resolve(ctx, s.kind)
	if err != nil {
		return nil, err
	}
	w, err := s.client.Watch(ctx, r, s.selection, o)
	if err != nil {
		return nil, err
	}
	return &serverStream{source: s, resource: r, watch: w}, nil
}

type serverStream struct {
	source   *serverSource
	resource object.Resource
	watch    *client.WatchStream
}

func (s *serverStream) close() error { return s.watch.Close() }

func (s *serverStream) next() (string, object.Object, error) {
	event, err := s.watch.Next()
	if err != nil {
		return "", nil, err
	}
	switch event.Type {
	case wire.Added, wire.Modified, wire.Deleted, wire.Bookmark:
	case wire.Error:
		var status metav1.Status
		if err := s.watch.Encoding.Decode(event.Object, &status); err != nil {
			return "", nil, fmt.Errorf("reading an error event: %w", err)
		}
		return "", nil, &apierrors.StatusError{ErrStatus: status}
	default:
		return "", nil, fmt.Errorf("the server sent an event of the unknown type %q", event.Type)
	}
	want := s.resource
	if !s.source.selection.MetadataOnly && (event.Kind != want.Kind || event.APIVersion != want.APIVersion()) {
		return "", nil, &undecodable{fmt.Errorf("want %s %s, have %s %s", want.APIVersion(), want.Kind, event.APIVersion, event.Kind)}
	}
	o, err := s.source.decode(s.resource, s.watch.Encoding, event.Object)
	if err != nil {
		return "", nil, &undecodable{err}
	}
	return event.Type, o, nil
}

// isExpired reports whether the server no longer knows the version asked for.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// isUndecodable reports whether an object was lost on the way.
func isUndecodable(err error) bool {
	var u *undecodable
	return errors.As(err, &u)
}
