// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

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
	// list reads objects and returns the version of the whole, and where the next
	// page begins; empty: there is none.
	list(ctx context.Context, o client.ListOptions, each func(*frame) error) (version, next string, err error)
	watch(ctx context.Context, o client.WatchOptions) (stream, error)
}

// stream is a running watch.
type stream interface {
	// next returns the next event. io.EOF means that the server ended the watch.
	// An error event is returned as an error.
	next() (kind string, f *frame, err error)
	// compressed reports whether the server compresses what it sends.
	compressed() bool
	close() error
}

// undecodable is an object that arrived and cannot be used: because it cannot be read, and then
// only a list can tell what it was, or because the informer's transform fails for it.
type undecodable struct{ cause error }

func (e *undecodable) Error() string { return "an object cannot be used: " + e.cause.Error() }
func (e *undecodable) Unwrap() error { return e.cause }

// serverSource reads a kind from an API server.
type serverSource struct {
	client    *client.Client
	kind      schema.GroupVersionKind
	resource  object.Resource // zero: looked up by the kind
	selection client.Selection
	content   *content
	transform func(object.Object) (object.Object, error) // nil: none
	calls     sync.Mutex                                 // has the transform called once at a time
}

func (s *serverSource) list(ctx context.Context, o client.ListOptions, each func(*frame) error) (string, string, error) {
	r, err := s.resolve(ctx)
	if err != nil {
		return "", "", err
	}
	var f frame
	meta, err := s.client.List(ctx, r, s.selection, o, func(e wire.Encoding, raw []byte) error {
		if err := s.read(&f, e, raw); err != nil {
			return &undecodable{err}
		}
		return each(&f)
	})
	if err != nil {
		return "", "", err
	}
	if !strings.HasSuffix(meta.Kind, "List") {
		// A Table or a Status has no items, and is not a list of none.
		return "", "", &undecodable{fmt.Errorf("want a list of %s, have a %q", s.kind.Kind, meta.Kind)}
	}
	return meta.ResourceVersion, meta.Continue, nil
}

// resolve returns how the server serves the kind.
func (s *serverSource) resolve(ctx context.Context) (object.Resource, error) {
	if s.resource != (object.Resource{}) {
		return s.resource, nil
	}
	return s.client.Resolve(ctx, s.kind)
}

// read fills a frame, by way of the transform if there is one. An object that the transform
// fails for is a frame with a fault.
func (s *serverSource) read(f *frame, e wire.Encoding, raw []byte) error {
	if err := f.read(e, raw); err != nil || s.transform == nil {
		return err
	}
	h := &f.head
	before := [4]string{string(h.Namespace), string(h.Name), string(h.UID), string(h.ResourceVersion)}
	otherwise, other, err := s.transformed(e, raw)
	if err == nil {
		err = f.read(otherwise, other)
	}
	if err == nil && before != [4]string{string(h.Namespace), string(h.Name), string(h.UID), string(h.ResourceVersion)} {
		err = errors.New("the transform changed namespace, name, UID or resourceVersion")
	}
	if err == nil {
		return nil
	}
	fault := err
	if err := f.read(e, raw); err != nil {
		return err
	}
	f.fault = fault
	return nil
}

// transformed has the transform change an object.
func (s *serverSource) transformed(e wire.Encoding, raw []byte) (wire.Encoding, []byte, error) {
	o := s.content.new()
	if err := e.Decode(raw, o); err != nil {
		return 0, nil, err
	}
	if u, ok := o.(*unstructured.Unstructured); ok && u.GetKind() == "" {
		u.SetGroupVersionKind(s.kind)
	}
	if !s.content.managed {
		o.SetManagedFields(nil)
	}
	s.calls.Lock()
	defer s.calls.Unlock()
	o, err := transformed(s.transform, o)
	if err != nil {
		return 0, nil, err
	}
	return encode(o)
}

// transformed calls a transform. One that panics is an error like any other.
func transformed(transform func(object.Object) (object.Object, error), before object.Object) (o object.Object, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the transform panicked: %v", p)
		}
	}()
	o, err = transform(before)
	if err == nil && pointerTo(o) == nil {
		return nil, errors.New("the transform returned no object")
	}
	return o, err
}

func (s *serverSource) watch(ctx context.Context, o client.WatchOptions) (stream, error) {
	r, err := s.resolve(ctx)
	if err != nil {
		return nil, err
	}
	stream := &serverStream{source: s, resource: r}
	before := o.BeforeRead
	o.BeforeRead = func() {
		if before != nil {
			before()
		}
		// The last event lies in the buffer that the watch reads into. A watch that rests has given that back, and would keep its 64 KB:
		// of a thousand informers at rest, every seventh did.
		stream.frame.drop()
	}
	if stream.watch, err = s.client.Watch(ctx, r, s.selection, o); err != nil {
		return nil, err
	}
	return stream, nil
}

type serverStream struct {
	source   *serverSource
	resource object.Resource
	watch    *client.WatchStream
	frame    frame
}

func (s *serverStream) close() error { return s.watch.Close() }

func (s *serverStream) compressed() bool { return s.watch.Compressed }

func (s *serverStream) next() (string, *frame, error) {
	event, err := s.watch.Next()
	if errors.Is(err, wire.ErrMalformed) || errors.Is(err, wire.ErrTooLarge) {
		return "", nil, &undecodable{err}
	}
	if err != nil {
		return "", nil, err
	}
	switch event.Type {
	case wire.Added, wire.Modified, wire.Deleted, wire.Bookmark:
	case wire.Error:
		var status metav1.Status
		if err := s.watch.Encoding.Decode(event.Object, &status); err != nil {
			return "", nil, &undecodable{fmt.Errorf("reading an error event: %w", err)}
		}
		return "", nil, &apierrors.StatusError{ErrStatus: status}
	default:
		return "", nil, &undecodable{fmt.Errorf("the server sent an event of the unknown type %q", event.Type)}
	}
	want := s.resource
	if !s.source.selection.MetadataOnly && (event.Kind != want.Kind || event.APIVersion != want.APIVersion()) {
		return "", nil, &undecodable{fmt.Errorf("want %s %s, have %s %s", want.APIVersion(), want.Kind, event.APIVersion, event.Kind)}
	}
	if event.Type == wire.Bookmark {
		// A bookmark is no object: a transform does not see it.
		err = s.frame.read(s.watch.Encoding, event.Object)
	} else {
		err = s.source.read(&s.frame, s.watch.Encoding, event.Object)
	}
	if err != nil {
		return "", nil, &undecodable{err}
	}
	return event.Type, &s.frame, nil
}

// isExpired reports whether the server no longer knows the requested version.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// isUndecodable reports whether an object was lost on the way.
func isUndecodable(err error) bool {
	var u *undecodable
	return errors.As(err, &u)
}
