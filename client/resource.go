// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/object"
)

type schemaKey = schema.GroupVersionKind

// KindOf returns the kind of a typed object: the kind in the object, or else the kind of
// its type, which is a built-in one or in the scheme of the client.
func (c *Client) KindOf(o runtime.Object) (schema.GroupVersionKind, error) {
	if kind := o.GetObjectKind().GroupVersionKind(); kind.Kind != "" && kind.Version != "" {
		return kind, nil
	}
	if kind, ok := builtinKindOf(reflect.TypeOf(o)); ok {
		return kind, nil
	}
	kinds, _, err := c.scheme.ObjectKinds(o)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("finding the kind of %T: %w: register the type in a scheme and give that to client.WithScheme, or name the resource", o, err)
	}
	return kinds[0], nil
}

// Resolve returns how the server serves a kind. Built-in kinds need no request. Others
// are looked up in the server's discovery, once. A kind that the server does not serve is
// an apierrors.IsNotFound.
func (c *Client) Resolve(ctx context.Context, kind schema.GroupVersionKind) (object.Resource, error) {
	if resource, builtin := builtinResource(kind); builtin {
		return resource, nil
	}
	c.mu.Lock()
	resource, known := c.resources[kind]
	c.mu.Unlock()
	if known {
		return resource, nil
	}
	path := "/apis/" + kind.Group + "/" + kind.Version
	if kind.Group == "" {
		path = "/api/" + kind.Version
	}
	answer, err := c.Request(http.MethodGet).Path(path).Do(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		return object.Resource{}, fmt.Errorf("looking up kind %s: %w", kind, err)
	}
	var list metav1.APIResourceList
	if err == nil {
		if err := json.Unmarshal(answer.Body, &list); err != nil {
			return object.Resource{}, fmt.Errorf("looking up kind %s: reading %s: %w", kind, path, err)
		}
	}
	for _, r := range list.APIResources {
		if r.Kind != kind.Kind || strings.Contains(r.Name, "/") { // a subresource
			continue
		}
		resource := object.Resource{Group: kind.Group, Version: kind.Version, Plural: r.Name, Kind: r.Kind, Namespaced: r.Namespaced}
		c.mu.Lock()
		c.resources[kind] = resource
		c.mu.Unlock()
		return resource, nil
	}
	return object.Resource{}, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("the server serves no kind %s in %s", kind.Kind, kind.GroupVersion()),
	}}
}

// Plural returns the name of a kind as kubectl prints it, without a request. It is right
// for built-in kinds, and a guess for others.
func Plural(kind schema.GroupVersionKind) string {
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural.GroupResource().String()
}
