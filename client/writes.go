// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// A WriteOption changes how an object is written.
type WriteOption func(*Request)

// FieldManager names the writer in the object's managedFields.
func FieldManager(name string) WriteOption {
	return func(r *Request) { r.Param("fieldManager", name) }
}

// DryRun has the server check the write and store nothing. A view
// made by With(DryRun()) deletes nothing either.
func DryRun() WriteOption { return func(r *Request) { r.Param("dryRun", "All") } }

// NoRetries sends a write once. Otherwise it is sent again, up to ten times, where the answer
// has a Retry-After: an eviction that a PodDisruptionBudget refuses with 10 s would hold its
// caller for more than 100 s. apierrors.SuggestsClientDelay returns the time of the error.
func NoRetries() WriteOption { return func(r *Request) { r.once = true } }

// Force takes over fields that other managers own. For Apply.
func Force() WriteOption { return func(r *Request) { r.Param("force", "true") } }

// MetadataAnswer has the server answer with no more than the metadata of what was
// written: the object that is returned has that and nothing else. It saves the answer's
// way and its decoding for who does not look at it:
//
//	writer := client.For[*corev1.Endpoints](c).With(client.MetadataAnswer())
func MetadataAnswer() WriteOption { return func(r *Request) { r.metadataAnswer = true } }

// Create stores a new object and returns it as the server has it.
func (t Typed[T]) Create(ctx context.Context, o T, options ...WriteOption) (T, error) {
	return t.put(ctx, http.MethodPost, "create", o, options)
}

// Update replaces an object. With a resourceVersion it is a conflict
// (apierrors.IsConflict) where the object has changed since.
func (t Typed[T]) Update(ctx context.Context, o T, options ...WriteOption) (T, error) {
	return t.put(ctx, http.MethodPut, verbUpdate, o, options)
}

// UpdateStatus replaces the status of an object, and nothing else.
func (t Typed[T]) UpdateStatus(ctx context.Context, o T, options ...WriteOption) (T, error) {
	return t.Sub("status").Update(ctx, object.KeyOf(o), o, options...)
}

func (t Typed[T]) put(ctx context.Context, method, verb string, o T, options []WriteOption) (T, error) {
	var none T
	request, err := t.request(ctx, method)
	if err != nil {
		return none, err
	}
	request.Namespace(o.GetNamespace())
	if method == http.MethodPut {
		request.Name(o.GetName())
	}
	if err := request.encode(o); err != nil {
		return none, err
	}
	before := Write{Verb: verb, Key: object.KeyOf(o), UID: o.GetUID()}
	return t.write(ctx, request, before, o.GetResourceVersion(), options)
}

// A Patch is a change to an object.
type Patch struct {
	Type types.PatchType
	Data []byte
}

// MergePatch returns a JSON merge patch (RFC 7386) of any value that marshals to
// JSON.
func MergePatch(change any) (Patch, error) {
	data, err := json.Marshal(change)
	if err != nil {
		return Patch{}, fmt.Errorf("encoding merge patch: %w", err)
	}
	return Patch{Type: types.MergePatchType, Data: data}, nil
}

// StrategicPatch returns a strategic merge patch, which built-in kinds
// understand, of any value that marshals to JSON.
func StrategicPatch(change any) (Patch, error) {
	data, err := json.Marshal(change)
	if err != nil {
		return Patch{}, fmt.Errorf("encoding strategic merge patch: %w", err)
	}
	return Patch{Type: types.StrategicMergePatchType, Data: data}, nil
}

// Patch changes an object and returns it as the server has it.
func (t Typed[T]) Patch(ctx context.Context, key object.Key, patch Patch, options ...WriteOption) (T, error) {
	var none T
	request, err := t.request(ctx, http.MethodPatch)
	if err != nil {
		return none, err
	}
	request.Key(key).Body(string(patch.Type), patch.Data)
	return t.write(ctx, request, Write{Verb: "patch", Key: key}, "", options)
}

// Apply is a server-side apply: the server makes the fields in config true, owned
// by manager. config is an apply configuration, or any value that marshals to JSON
// with the object's kind, apiVersion and name.
func (t Typed[T]) Apply(ctx context.Context, key object.Key, manager string, config any, options ...WriteOption) (T, error) {
	patch, err := applyPatch(key, config)
	if err != nil {
		var none T
		return none, err
	}
	return t.Patch(ctx, key, patch, append(slices.Clip(options), FieldManager(manager))...)
}

func applyPatch(key object.Key, config any) (Patch, error) {
	data, err := json.Marshal(config)
	if err != nil {
		return Patch{}, fmt.Errorf("encoding apply configuration of %s: %w", key, err)
	}
	return Patch{Type: types.ApplyPatchType, Data: data}, nil
}

// write sends a write whose answer is the object, and records it. sent is the
// resourceVersion that was sent: an answer with the same one changed nothing.
func (t Typed[T]) write(ctx context.Context, request *Request, w Write, sent string, options []WriteOption) (T, error) {
	o, ok, err := t.send(ctx, request, w, sent, options)
	if err == nil && !ok {
		err = fmt.Errorf("%s: the server did it, but: %w", request, errNoObject)
	}
	return o, err
}

// send is as write. It returns false where the answer is a Status, from which the outcome
// of a write other than a delete is not known.
func (t Typed[T]) send(ctx context.Context, request *Request, w Write, sent string, options []WriteOption) (o T, ok bool, err error) {
	request.apply(t.options, options, wire.SpeaksProtobuf(o))
	w.Resource, w.Client = request.resource, t.client
	answer, err := request.Do(ctx)
	if err != nil {
		if w.Unknown = Unanswered(err); w.Unknown {
			request.record(ctx, w)
		}
		return o, false, err
	}
	answered, kind, ok, err := read[T](answer)
	if err != nil || !ok {
		w.Unknown = err != nil || w.Verb != verbDelete
		request.record(ctx, w)
		if err != nil {
			err = fmt.Errorf("%s: the server did it, but: %w", request, err)
		}
		return o, false, err
	}
	if request.metadataAnswer {
		// JSON says PartialObjectMetadata of itself, which this is not any more.
		answered.GetObjectKind().SetGroupVersionKind(request.kind())
	}
	request.record(ctx, w.outcome(request, kind, answered, sent))
	return answered, true, nil
}

// outcome completes a write with what its answer says. Of a subresource the answer has the
// version of the object, or none: then the object must be read to know it.
func (w Write) outcome(request *Request, kind string, o object.Object, sent string) Write {
	version := o.GetResourceVersion()
	if request.subresource == "" {
		w.Key, w.UID = object.KeyOf(o), o.GetUID()
	} else {
		w.UID = cmp.Or(o.GetUID(), w.UID)
		w.Unknown = version == "" && w.Verb != verbDelete
	}
	if version != sent && w.Verb != verbDelete {
		w.Version, _ = object.ParseVersion(version)
	}
	w.Object = written(request, kind, o)
	return w
}

// apply makes the request what the options of a view and of a single write say.
func (r *Request) apply(view, single []WriteOption, protobuf bool) {
	for _, option := range view {
		option(r)
	}
	for _, option := range single {
		option(r)
	}
	if r.metadataAnswer {
		accept := metadataTypes
		if !protobuf {
			accept = accept[1:]
		}
		r.Accept(accept...)
	}
}

// record tells of a write, unless it was a dry run or one that changes no object.
func (r *Request) record(ctx context.Context, w Write) {
	if r.params.Get("dryRun") == "" && !r.harmless {
		record(ctx, w)
	}
}

// kind is what the body and the answer of the request are: an object of the resource, or
// what its subresource takes.
func (r *Request) kind() schema.GroupVersionKind {
	if r.part != (schema.GroupVersionKind{}) {
		return r.part
	}
	return r.resource.GroupVersionKind()
}

// written returns the object that an answer shows, or nil: a subresource may answer with
// another kind, which has neither the labels nor the fields of the object.
func written(request *Request, kind string, o object.Object) object.Object {
	switch {
	case request.kind() != request.resource.GroupVersionKind():
		return nil
	case kind == "PartialObjectMetadata":
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), Labels: o.GetLabels(),
		}}
	case kind != request.resource.Kind:
		return nil
	}
	return o
}

// encode writes an object as the request's body. API servers take protobuf for their own
// kinds alone: not for custom ones, whose Go types may have the methods for it all the same.
func (r *Request) encode(o object.Object) error {
	kind := r.kind()
	m, protobuf := o.(interface{ Marshal() ([]byte, error) })
	protobuf = protobuf && !r.client.jsonOnly && wire.SpeaksProtobuf(o) &&
		Builtin(kind.GroupKind()) && Builtin(r.resource.GroupVersionKind().GroupKind())
	var raw []byte
	var err error
	if protobuf {
		if raw, err = m.Marshal(); err == nil {
			raw, err = wire.Seal(kind.GroupVersion().String(), kind.Kind, raw)
		}
		r.Body(wire.Protobuf.MediaType(), raw)
	} else {
		// JSON names the kind inside of the object.
		named := o.DeepCopyObject()
		named.GetObjectKind().SetGroupVersionKind(kind)
		raw, err = json.Marshal(named)
		r.Body(wire.JSON.MediaType(), raw)
	}
	if err != nil {
		return fmt.Errorf("%s: encoding its body: %w", r, err)
	}
	return nil
}
