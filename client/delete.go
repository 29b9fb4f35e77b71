// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// A DeleteOption changes how an object is deleted.
type DeleteOption func(*metav1.DeleteOptions)

// IfUID deletes only the object with this UID: another object of the name is a conflict.
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

// GracePeriod overrides the object's grace period, rounded to seconds. 0 deletes at once.
func GracePeriod(d time.Duration) DeleteOption {
	seconds := int64(d.Round(time.Second) / time.Second)
	return func(o *metav1.DeleteOptions) { o.GracePeriodSeconds = &seconds }
}

// Propagation sets what happens to the objects that the deleted one owns.
func Propagation(p metav1.DeletionPropagation) DeleteOption {
	return func(o *metav1.DeleteOptions) { o.PropagationPolicy = &p }
}

// Delete deletes an object. The object may exist for a while: for its grace period, and until
// its finalizers are removed.
func (t Typed[T]) Delete(ctx context.Context, key object.Key, options ...DeleteOption) error {
	request, o, err := t.deletion(ctx, options)
	if err != nil {
		return err
	}
	w := Write{Verb: verbDelete, Resource: request.resource, Key: key, Client: t.client}
	if o.Preconditions != nil && o.Preconditions.UID != nil {
		w.UID = *o.Preconditions.UID
	}
	_, err = request.Key(key).Do(ctx)
	if w.Unknown = Unanswered(err); w.Unknown {
		w.Code = codeOf(err)
	}
	switch {
	case len(o.DryRun) > 0:
	case err == nil || w.Unknown:
		record(ctx, w)
	default:
		recordRefused(ctx, w, err)
	}
	return err
}

// deletion returns the request of a delete, without the name of the object, and its options.
func (t Typed[T]) deletion(ctx context.Context, options []DeleteOption) (*Request, metav1.DeleteOptions, error) {
	request, err := t.request(ctx, http.MethodDelete)
	if err != nil {
		return nil, metav1.DeleteOptions{}, err
	}
	o := t.deleteOptions(options)
	contentType, body, err := deleteBody(&o)
	if err != nil {
		return nil, o, fmt.Errorf("%s: %w", request, err)
	}
	return request.Body(contentType, body), o, nil
}

// deleteOptions returns the options of a delete. A view whose writes are dry runs deletes
// nothing either.
func (t Typed[T]) deleteOptions(options []DeleteOption) metav1.DeleteOptions {
	var o metav1.DeleteOptions
	var ofWrites writeOptions
	if ofWrites.add(t.options); ofWrites.dryRun {
		o.DryRun = []string{metav1.DryRunAll} // in the body: servers ignore the query of a delete with a body
	}
	for _, option := range options {
		option(&o)
	}
	return o
}

// DeleteCollection deletes the objects of a selection.
func (t Typed[T]) DeleteCollection(ctx context.Context, s Selection, options ...DeleteOption) error {
	request, o, err := t.deletion(ctx, options)
	if err != nil {
		return err
	}
	_, err = request.Namespace(s.Namespace).Param("labelSelector", s.Labels).Param("fieldSelector", s.Fields).Do(ctx)
	w := Write{
		Verb: "deletecollection", Resource: request.resource, Key: object.Key{Namespace: s.Namespace}, Unknown: true, Client: t.client,
	}
	switch {
	case len(o.DryRun) > 0:
	case err == nil || Unanswered(err):
		record(ctx, w)
	default:
		w.Unknown = false
		recordRefused(ctx, w, err)
	}
	return err
}

func deleteBody(o *metav1.DeleteOptions) (string, []byte, error) {
	o.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
	body, err := json.Marshal(o)
	return wire.JSON.MediaType(), body, err
}
