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
	if method == http.MethodPost {
		o = annotated(ctx, Write{Verb: verb, Resource: request.resource, Key: object.KeyOf(o)}, o)
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

// MergePatch returns a JSON merge patch (RFC 7386) of any value that marshals to JSON.
func MergePatch(change any) (Patch, error) {
	data, err := json.Marshal(change)
	if err != nil {
		return Patch{}, fmt.Errorf("encoding merge patch: %w", err)
	}
	return Patch{Type: types.MergePatchType, Data: data}, nil
}

// StrategicPatch returns a strategic merge patch, which servers take for built-in kinds, of any
// value that marshals to JSON.
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
	return t.write(ctx, request, Write{Verb: "patch", Key: key, Patch: &patch}, "", options)
}

// Apply is a server-side apply: the server sets the fields in config, and manager owns them.
// config is an apply configuration, or any value that marshals to JSON with the object's kind,
// apiVersion and name.
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

// write sends a write whose answer is the object, and records it. sent is the resourceVersion
// in the request: if the answer has the same one, the write has changed nothing.
func (t Typed[T]) write(ctx context.Context, request *Request, w Write, sent string, options []WriteOption) (T, error) {
	o, ok, err := t.send(ctx, request, w, sent, options)
	if err == nil && !ok {
		err = fmt.Errorf("%s: the server did it, but: %w", request, errNoObject)
	}
	return o, err
}

// send is as write. It returns false if the answer is a Status, which does not contain the
// outcome of a write other than a delete.
func (t Typed[T]) send(ctx context.Context, request *Request, w Write, sent string, options []WriteOption) (o T, ok bool, err error) {
	request.apply(t.options, options, wire.SpeaksProtobuf(o))
	w.Resource, w.Client, w.Subresource, w.Manager = request.resource, t.client, request.subresource, request.options.fieldManager
	w.Before, _ = object.ParseVersion(sent)
	answer, err := request.Do(ctx)
	if err != nil {
		if w.Unknown = Unanswered(err); w.Unknown {
			w.Code = codeOf(err)
			request.record(ctx, w)
		} else if !request.options.dryRun && !request.harmless {
			recordRefused(ctx, w, err)
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
	if request.options.metadataAnswer {
		// The kind in the JSON is PartialObjectMetadata, and the object is a T.
		answered.GetObjectKind().SetGroupVersionKind(request.kind())
	}
	request.record(ctx, w.outcome(request, kind, answered, sent))
	return answered, true, nil
}

// outcome completes a write from its answer. The answer of a subresource has the version of
// the object, or none: then the outcome is known only after a read of the object.
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

// record calls the recorders of ctx, unless the write was a dry run or changes no object.
func (r *Request) record(ctx context.Context, w Write) {
	if !r.options.dryRun && !r.harmless {
		record(ctx, w)
	}
}

// kind returns the kind of the request's body and answer: that of the resource, or that of its
// subresource.
func (r *Request) kind() schema.GroupVersionKind {
	if r.part != (schema.GroupVersionKind{}) {
		return r.part
	}
	return r.resource.GroupVersionKind()
}

// written returns the object of an answer, or nil: a subresource may answer with another kind,
// which has neither the labels nor the fields of the object.
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

// encode writes an object as the request's body. API servers take protobuf only for built-in
// kinds; the Go types of custom kinds may have the methods for protobuf too.
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
