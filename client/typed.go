// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Typed is a client's view of one kind. It is a small value, safe for concurrent
// use and cheap to make; make one where it is needed.
type Typed[T object.Object] struct {
	client   *Client
	resource object.Resource // zero: found by T's kind
	options  []WriteOption   // of all writes
}

// For returns the view of the kind whose objects are T, for example
// For[*corev1.Pod](c).
func For[T object.Object](c *Client) Typed[T] { return Typed[T]{client: c} }

// ForResource returns the view of a resource whose objects are read into T:
// *unstructured.Unstructured, say, or *metav1.PartialObjectMetadata, of which the
// server then sends no more than that.
func ForResource[T object.Object](c *Client, r object.Resource) Typed[T] {
	return Typed[T]{client: c, resource: r}
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
	builtin object.Resource // zero: to be asked of the server
}

// knownOf looks a type up once: it needs an object to look at, and a Pod is large to be
// made for every request; and building the name of a resource was 2 % of what a manager
// did while it created Pods.
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
	var sample T // of which the type is looked at alone
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
	answer, err := request.Key(key).Do(ctx)
	if err != nil {
		return none, err
	}
	o, _, ok, err := read[T](answer)
	if err == nil && !ok {
		err = fmt.Errorf("the answer is no object")
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

// A WriteOption changes how an object is written.
type WriteOption func(*Request)

// FieldManager names the writer in the object's managedFields.
func FieldManager(name string) WriteOption {
	return func(r *Request) { r.Param("fieldManager", name) }
}

// DryRun has the server check the write and store nothing. For deletes there is
// [DryRunDelete]; a view made by With(DryRun()) deletes nothing either.
func DryRun() WriteOption { return func(r *Request) { r.Param("dryRun", "All") } }

// Force takes over fields that other managers own. For Apply.
func Force() WriteOption { return func(r *Request) { r.Param("force", "true") } }

// OnSubresource writes to a part of the object, such as "scale".
func OnSubresource(name string) WriteOption { return func(r *Request) { r.Subresource(name) } }

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
	return t.put(ctx, http.MethodPut, "update", o, options)
}

// UpdateStatus replaces the status of an object, and nothing else.
func (t Typed[T]) UpdateStatus(ctx context.Context, o T, options ...WriteOption) (T, error) {
	return t.put(ctx, http.MethodPut, "update", o, append(slices.Clip(options), OnSubresource("status")))
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
	contentType, body, err := t.encode(request.resource, o)
	if err != nil {
		return none, fmt.Errorf("%s: %w", request, err)
	}
	request.Body(contentType, body)
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
	data, err := json.Marshal(config)
	if err != nil {
		var none T
		return none, fmt.Errorf("encoding apply configuration of %s: %w", key, err)
	}
	return t.Patch(ctx, key, Patch{Type: types.ApplyPatchType, Data: data}, append(slices.Clip(options), FieldManager(manager))...)
}

// write sends a write whose answer is the object, and records it. sent is the
// resourceVersion that was sent: an answer with the same one changed nothing.
func (t Typed[T]) write(ctx context.Context, request *Request, w Write, sent string, options []WriteOption) (T, error) {
	var none T
	for _, option := range t.options {
		option(request)
	}
	for _, option := range options {
		option(request)
	}
	if request.metadataAnswer {
		accept := metadataTypes
		if !wire.SpeaksProtobuf(none) {
			accept = accept[1:]
		}
		request.Accept(accept...)
	}
	dryRun := request.params.Get("dryRun") != ""
	w.Resource, w.Client = request.resource, t.client
	answer, err := request.Do(ctx)
	if err != nil {
		if w.Unknown = Unanswered(err); w.Unknown && !dryRun {
			record(ctx, w)
		}
		return none, err
	}
	// The object of a subresource may be of another kind (Scale, Binding): then
	// only the write itself is known.
	o, kind, ok, err := read[T](answer)
	if err != nil || !ok {
		if w.Unknown = true; !dryRun {
			record(ctx, w)
		}
		if err == nil {
			err = fmt.Errorf("the answer is no object")
		}
		return none, fmt.Errorf("%s: the server did it, but: %w", request, err)
	}
	if request.metadataAnswer {
		// JSON says PartialObjectMetadata of itself, which this is not any more.
		o.GetObjectKind().SetGroupVersionKind(request.resource.GroupVersionKind())
	}
	if !dryRun {
		w.Key, w.UID = object.KeyOf(o), o.GetUID()
		if o.GetResourceVersion() != sent {
			w.Version, _ = object.ParseVersion(o.GetResourceVersion())
		}
		w.Object = written(request, kind, o)
		record(ctx, w)
		w.Object = nil
	}
	return o, nil
}

// written returns the object that an answer shows, or nil: a subresource may answer with
// another kind, which has neither the labels nor the fields of the object.
func written(request *Request, kind string, o object.Object) object.Object {
	metadata := kind == "PartialObjectMetadata" && (request.subresource == "" || request.subresource == "status")
	switch {
	case !metadata && kind != request.resource.Kind:
		return nil
	case metadata:
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), Labels: o.GetLabels(),
		}}
	}
	return o
}

// encode writes an object as a request's body. API servers take protobuf for their own
// kinds alone: not for custom ones, whose Go types may have the methods for it all the same.
func (t Typed[T]) encode(r object.Resource, o T) (string, []byte, error) {
	m, protobuf := any(o).(interface{ Marshal() ([]byte, error) })
	if protobuf && !t.client.jsonOnly && wire.SpeaksProtobuf(o) && Builtin(r.GroupVersionKind().GroupKind()) {
		raw, err := m.Marshal()
		if err != nil {
			return "", nil, err
		}
		body, err := wire.Seal(r.APIVersion(), r.Kind, raw)
		return wire.Protobuf.MediaType(), body, err
	}
	// JSON names the kind inside of the object.
	named := o.DeepCopyObject()
	named.GetObjectKind().SetGroupVersionKind(r.GroupVersionKind())
	body, err := json.Marshal(named)
	return wire.JSON.MediaType(), body, err
}

// A DeleteOption changes how an object is deleted.
type DeleteOption func(*metav1.DeleteOptions)

// IfUID deletes only the object with this UID: another one under its name is a
// conflict.
func IfUID(uid types.UID) DeleteOption {
	return func(o *metav1.DeleteOptions) { preconditions(o).UID = &uid }
}

// IfVersion deletes the object only if it has not changed since.
func IfVersion(v object.Version) DeleteOption {
	s := string(v)
	return func(o *metav1.DeleteOptions) { preconditions(o).ResourceVersion = &s }
}

func preconditions(o *metav1.DeleteOptions) *metav1.Preconditions {
	if o.Preconditions == nil {
		o.Preconditions = &metav1.Preconditions{}
	}
	return o.Preconditions
}

// GracePeriod overrides the object's own, rounded to seconds. 0 deletes at once.
func GracePeriod(d time.Duration) DeleteOption {
	seconds := int64(d.Round(time.Second) / time.Second)
	return func(o *metav1.DeleteOptions) { o.GracePeriodSeconds = &seconds }
}

// DryRunDelete has the server check the deletion and delete nothing.
func DryRunDelete() DeleteOption {
	return func(o *metav1.DeleteOptions) { o.DryRun = []string{metav1.DryRunAll} }
}

// Propagation says what happens to the objects that this one owns.
func Propagation(p metav1.DeletionPropagation) DeleteOption {
	return func(o *metav1.DeleteOptions) { o.PropagationPolicy = &p }
}

// Delete deletes an object. It may stay for a while: for its grace period, and
// until its finalizers are gone.
func (t Typed[T]) Delete(ctx context.Context, key object.Key, options ...DeleteOption) error {
	request, err := t.request(ctx, http.MethodDelete)
	if err != nil {
		return err
	}
	o := t.deleteOptions(request, options)
	contentType, body, err := deleteBody(&o)
	if err != nil {
		return fmt.Errorf("%s: %w", request, err)
	}
	w := Write{Verb: "delete", Resource: request.resource, Key: key, Client: t.client}
	if o.Preconditions != nil && o.Preconditions.UID != nil {
		w.UID = *o.Preconditions.UID
	}
	_, err = request.Key(key).Body(contentType, body).Do(ctx)
	w.Unknown = Unanswered(err)
	if (err == nil || w.Unknown) && len(o.DryRun) == 0 {
		record(ctx, w)
	}
	return err
}

// deleteOptions are those of a delete, and what it takes of those of the view's writes: a
// view whose writes store nothing deletes nothing.
func (t Typed[T]) deleteOptions(request *Request, options []DeleteOption) metav1.DeleteOptions {
	var o metav1.DeleteOptions
	ofWrites := t.client.Request(request.method)
	for _, option := range t.options {
		option(ofWrites)
	}
	if dryRun := ofWrites.params.Get("dryRun"); dryRun != "" {
		o.DryRun = []string{dryRun} // a server reads the query of a delete only where there is no body
	}
	for _, option := range options {
		option(&o)
	}
	return o
}

// DeleteCollection deletes the objects of a selection.
func (t Typed[T]) DeleteCollection(ctx context.Context, s Selection, options ...DeleteOption) error {
	request, err := t.request(ctx, http.MethodDelete)
	if err != nil {
		return err
	}
	o := t.deleteOptions(request, options)
	contentType, body, err := deleteBody(&o)
	if err != nil {
		return fmt.Errorf("%s: %w", request, err)
	}
	_, err = request.Namespace(s.Namespace).Param("labelSelector", s.Labels).Param("fieldSelector", s.Fields).
		Body(contentType, body).Do(ctx)
	w := Write{
		Verb: "deletecollection", Resource: request.resource, Key: object.Key{Namespace: s.Namespace}, Unknown: true, Client: t.client,
	}
	if (err == nil || Unanswered(err)) && len(o.DryRun) == 0 {
		record(ctx, w)
	}
	return err
}

func deleteBody(o *metav1.DeleteOptions) (string, []byte, error) {
	o.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
	body, err := json.Marshal(o)
	return wire.JSON.MediaType(), body, err
}
