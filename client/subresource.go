// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/object"
)

// Subresource is a view of one subresource of the objects of a kind. It is a small value,
// safe for concurrent use and cheap to make; make one where it is needed.
type Subresource[S object.Object] struct {
	client  *Client
	name    string
	parent  func(context.Context) (object.Resource, error)
	same    bool // the subresource takes objects of the parent's type
	options []WriteOption
}

// Sub returns the view of a subresource of the objects of a kind, which takes and answers
// objects of type S:
//
//	scale := client.Sub[*autoscalingv1.Scale](deployments, "scale")
//	now, err := scale.Get(ctx, key)
//
// S is *autoscalingv1.Scale for "scale", of custom kinds too, *policyv1.Eviction for
// "eviction", *authenticationv1.TokenRequest for "token" and *corev1.Binding for "binding".
// It is the kind itself for "status", "approval", "finalize", "resize" and
// "ephemeralcontainers". Writes have the options of the view of.
//
// A [Recorder] records what a write does to the object that the subresource belongs to. A
// Scale carries the object's version, an eviction deletes the Pod, and a token changes
// nothing, so that no write is recorded. Where the answer carries no version, as after a
// binding, the outcome is Unknown.
func Sub[S, T object.Object](of Typed[T], name string) Subresource[S] {
	return Subresource[S]{
		client: of.client, name: name, parent: of.Resource, options: of.options,
		same: reflect.TypeFor[S]() == reflect.TypeFor[T](),
	}
}

// Sub returns the view of a subresource that takes and answers objects of the kind itself,
// such as "status". For one that takes others see [Sub].
func (t Typed[T]) Sub(name string) Subresource[T] { return Sub[T](t, name) }

// Get reads the subresource of an object.
func (s Subresource[S]) Get(ctx context.Context, key object.Key) (S, error) {
	_, request, err := s.request(ctx, http.MethodGet, key, object.New[S]())
	if err != nil {
		var none S
		return none, err
	}
	return get[S](ctx, request)
}

// Create sends o to the subresource of an object, for an eviction, a token or a binding. The
// name and the namespace of o may be empty: they are those of key. It returns the answer, or
// a copy of what was sent where the server answers with a Status, as after an eviction.
//
// A server that a PodDisruptionBudget keeps from evicting answers 429
// (apierrors.IsTooManyRequests). apierrors.SuggestsClientDelay has the time after which it
// wants to be tried again, if it names one. A controller passes [NoRetries] and returns that
// time in its result, so that no worker waits.
func (s Subresource[S]) Create(ctx context.Context, key object.Key, o S, options ...WriteOption) (S, error) {
	return s.put(ctx, http.MethodPost, key, o, options)
}

// Update replaces the subresource of an object. With a resourceVersion it is a conflict
// (apierrors.IsConflict) where the object has changed since. The name and the namespace of o
// may be empty.
func (s Subresource[S]) Update(ctx context.Context, key object.Key, o S, options ...WriteOption) (S, error) {
	return s.put(ctx, http.MethodPut, key, o, options)
}

// Patch changes the subresource of an object and returns it as the server has it.
func (s Subresource[S]) Patch(ctx context.Context, key object.Key, patch Patch, options ...WriteOption) (S, error) {
	view, request, err := s.request(ctx, http.MethodPatch, key, object.New[S]())
	if err != nil {
		var none S
		return none, err
	}
	request.Body(string(patch.Type), patch.Data)
	return view.write(ctx, request, Write{Verb: "patch", Key: key, Patch: &patch}, "", options)
}

func (s Subresource[S]) put(ctx context.Context, method string, key object.Key, o S, options []WriteOption) (S, error) {
	var none S
	view, request, err := s.request(ctx, method, key, o)
	if err != nil {
		return none, err
	}
	if o, err = named(o, key); err != nil {
		return none, fmt.Errorf("%s: %w", request, err)
	}
	if err := request.encode(o); err != nil {
		return none, err
	}
	w := Write{Verb: verbUpdate, Key: key, UID: o.GetUID()}
	switch resource := request.resource; {
	case resource.Group == "" && resource.Plural == "pods" && s.name == "eviction":
		w, err = evicts(request, key, o)
		if err != nil {
			return none, err
		}
	case resource.Group == "" && resource.Plural == "serviceaccounts" && s.name == "token":
		request.harmless = true
	}
	answered, ok, err := view.send(ctx, request, w, o.GetResourceVersion(), options)
	if err == nil && !ok {
		return o.DeepCopyObject().(S), nil
	}
	return answered, err
}

// request begins a request for the subresource of an object, and returns with it the view
// that sends it. o is what the request carries.
func (s Subresource[S]) request(ctx context.Context, method string, key object.Key, o S) (Typed[S], *Request, error) {
	parent, err := s.parent(ctx)
	if err != nil {
		return Typed[S]{}, nil, err
	}
	view := ForResource[S](s.client, parent).With(s.options...)
	request, err := view.request(ctx, method)
	if err != nil {
		return view, nil, err
	}
	if request.part, err = s.kind(o); err != nil {
		return view, nil, err
	}
	return view, request.Key(key).Subresource(s.name), nil
}

// kind returns what o is. The zero kind is that of the object that the subresource is of.
func (s Subresource[S]) kind(o S) (schema.GroupVersionKind, error) {
	switch any(o).(type) {
	case runtime.Unstructured:
		return o.GetObjectKind().GroupVersionKind(), nil
	case *metav1.PartialObjectMetadata:
		return schema.GroupVersionKind{}, nil
	}
	if s.same {
		return schema.GroupVersionKind{}, nil
	}
	known, err := knownOf[S](s.client)
	return known.kind, err
}

// named returns o with the name and the namespace of the object that it is sent to: servers
// refuse a body with others. o itself is not changed.
func named[S object.Object](o S, key object.Key) (S, error) {
	if object.KeyOf(o) == key {
		return o, nil
	}
	if name, namespace := o.GetName(), o.GetNamespace(); name != "" && name != key.Name || namespace != "" && namespace != key.Namespace {
		return o, fmt.Errorf("the body is of another object: %s", object.KeyOf(o))
	}
	o = o.DeepCopyObject().(S)
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	return o, nil
}

// evicts returns what an eviction does: it deletes the Pod, with the delete options that
// are in its body.
func evicts(request *Request, key object.Key, o object.Object) (Write, error) {
	w := Write{Verb: verbDelete, Key: key}
	var body struct {
		DeleteOptions metav1.DeleteOptions `json:"deleteOptions"`
	}
	raw, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	if err != nil {
		return w, fmt.Errorf("%s: reading its delete options: %w", request, err)
	}
	if p := body.DeleteOptions.Preconditions; p != nil && p.UID != nil {
		w.UID = *p.UID
	}
	request.options.dryRun = len(body.DeleteOptions.DryRun) > 0
	return w, nil
}
