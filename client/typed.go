// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Typed is a client's view of one kind. It is a small value, safe for concurrent
// use and cheap to make; make one where it is needed.
type Typed[T object.Object] struct {
	client   *Client
	resource object.Resource         // zero: found by the kind
	kind     schema.GroupVersionKind // zero: T's
	options  []WriteOption           // of all writes
}

// For returns the view of the kind whose objects are T, for example
// For[*corev1.Pod](c).
func For[T object.Object](c *Client) Typed[T] { return Typed[T]{client: c} }

// ForResource returns the view of a resource whose objects are read into T:
// *unstructured.Unstructured, say, or *metav1.PartialObjectMetadata. Of the latter the
// server sends no more than that, except for a List, which has [Selection].MetadataOnly.
func ForResource[T object.Object](c *Client, r object.Resource) Typed[T] {
	return Typed[T]{client: c, resource: r}
}

// ForKind is as [ForResource], for a kind whose resource is looked up in the server's
// discovery.
func ForKind[T object.Object](c *Client, kind schema.GroupVersionKind) Typed[T] {
	return Typed[T]{client: c, kind: kind}
}

// With returns a view that writes with these options, before those of a single write.
func (t Typed[T]) With(options ...WriteOption) Typed[T] {
	t.options = slices.Concat(t.options, options)
	return t
}

// Resource returns the resource of T.
func (t Typed[T]) Resource(ctx context.Context) (object.Resource, error) {
	if t.resource != (object.Resource{}) {
		return t.resource, nil
	}
	if !t.kind.Empty() {
		return t.client.Resolve(ctx, t.kind)
	}
	known, err := knownOf[T](t.client)
	if err != nil {
		return object.Resource{}, err
	}
	if known.builtin != (object.Resource{}) {
		return known.builtin, nil
	}
	return t.client.Resolve(ctx, known.kind)
}

// known is what does not change about a type.
type known struct {
	kind    schema.GroupVersionKind
	builtin object.Resource // zero: looked up on the server
}

// knownOf looks a type up once. A look-up needs an object, and a Pod is too large to be
// made for every request. Building the name of a resource was 2 % of the CPU time of a
// manager that created Pods.
func knownOf[T object.Object](c *Client) (known, error) {
	typ := reflect.TypeFor[T]()
	if k, ok := c.types.Load(typ); ok {
		return k.(known), nil
	}
	var k known
	var err error
	if k.kind, err = c.KindOf(object.New[T]()); err == nil {
		k.builtin, _ = builtinResource(k.kind)
		c.types.Store(typ, k)
	}
	return k, err
}

// request begins a request for an object of T.
func (t Typed[T]) request(ctx context.Context, method string) (*Request, error) {
	r, err := t.Resource(ctx)
	if err != nil {
		return nil, err
	}
	request := t.client.Request(method).Resource(r)
	var sample T // only its type is used
	_, metadata := any(sample).(*metav1.PartialObjectMetadata)
	switch {
	case metadata && method != http.MethodDelete: // whose answer may be a Status, and is not read
		request.Accept(metadataTypes...)
	case wire.SpeaksProtobuf(sample):
		request.Accept(wire.Protobuf.MediaType(), wire.JSON.MediaType())
	}
	return request, nil
}

// read decodes an answer that should be a T, and returns the kind that the answer says it
// is. It returns false if that is a Status.
func read[T object.Object](answer Answer) (o T, kind string, ok bool, err error) {
	apiVersion, kind, raw, err := answer.Encoding.Open(answer.Body)
	if err != nil || kind == "Status" && apiVersion == "v1" {
		return o, kind, false, err
	}
	o = object.New[T]()
	return o, kind, true, answer.Encoding.Decode(raw, o)
}

// Get reads one object from the server, as new as any write that was answered
// before.
func (t Typed[T]) Get(ctx context.Context, key object.Key) (T, error) {
	var none T
	request, err := t.request(ctx, http.MethodGet)
	if err != nil {
		return none, err
	}
	return get[T](ctx, request.Key(key))
}

// errNoObject is the error of an answer that is a Status where an object should be.
var errNoObject = errors.New("the answer is no object")

func get[T object.Object](ctx context.Context, request *Request) (T, error) {
	var none T
	answer, err := request.Do(ctx)
	if err != nil {
		return none, err
	}
	o, _, ok, err := read[T](answer)
	if err == nil && !ok {
		err = errNoObject
	}
	if err != nil {
		return none, fmt.Errorf("%s: %w", request, err)
	}
	return o, nil
}

// List reads the objects of a selection, in one answer, and the
// resourceVersion of the whole.
func (t Typed[T]) List(ctx context.Context, s Selection) ([]T, object.Version, error) {
	r, err := t.Resource(ctx)
	if err != nil {
		return nil, "", err
	}
	var sample T
	s.JSONOnly = !wire.SpeaksProtobuf(sample)
	var list []T
	meta, err := t.client.List(ctx, r, s, ListOptions{}, func(e wire.Encoding, raw []byte) error {
		o := object.New[T]()
		if err := e.Decode(raw, o); err != nil {
			return err
		}
		list = append(list, o)
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	version, err := object.ParseVersion(meta.ResourceVersion)
	return list, version, err
}
