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
	described, err := c.describe(ctx, kind.GroupVersion())
	if err != nil && !apierrors.IsNotFound(err) {
		return object.Resource{}, fmt.Errorf("looking up kind %s: %w", kind, err)
	}
	for _, r := range described {
		if r.Kind != kind.Kind || strings.Contains(r.Name, "/") { // a subresource
			continue
		}
		resource := object.Resource{Group: kind.Group, Version: kind.Version, Plural: r.Name, Kind: r.Kind, Namespaced: r.Namespaced}
		c.mu.Lock()
		c.resources[kind] = resource
		c.mu.Unlock()
		return resource, nil
	}
	return object.Resource{}, kindNotServed(kind)
}

// kindNotServed is the error of a kind that the server does not serve.
func kindNotServed(kind schema.GroupVersionKind) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("the server serves no kind %s in %s", kind.Kind, kind.GroupVersion()),
	}}
}

// ResolveAnyVersion is as [Client.Resolve]. If the server does not serve the kind in its version,
// the result is the kind in another version of its group: the one that the server prefers, if it
// has the kind. Objects that name a kind by its group, such as the scaleTargetRef of a
// HorizontalPodAutoscaler, may name a version that is served no longer.
func (c *Client) ResolveAnyVersion(ctx context.Context, kind schema.GroupVersionKind) (object.Resource, error) {
	resource, notServed := c.Resolve(ctx, kind)
	if notServed == nil && Builtin(kind.GroupKind()) && kind.Version != "v1" {
		// Resolve takes any version of a built-in kind for one that is served.
		switch described, err := c.describe(ctx, kind.GroupVersion()); {
		case err != nil && !apierrors.IsNotFound(err):
			return object.Resource{}, fmt.Errorf("looking up kind %s: %w", kind, err)
		case !slices.ContainsFunc(described, func(r metav1.APIResource) bool { return r.Kind == kind.Kind }):
			notServed = kindNotServed(kind)
		}
	}
	switch {
	case notServed == nil:
		return resource, nil
	case !apierrors.IsNotFound(notServed) || kind.Group == "":
		return object.Resource{}, notServed
	}
	answer, err := c.Request(http.MethodGet).Path("/apis/" + kind.Group).Do(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return object.Resource{}, notServed
	case err != nil:
		return object.Resource{}, fmt.Errorf("looking up the versions of %s: %w", kind.Group, err)
	}
	var group metav1.APIGroup
	if err := json.Unmarshal(answer.Body, &group); err != nil {
		return object.Resource{}, fmt.Errorf("looking up the versions of %s: %w", kind.Group, err)
	}
	group.Name = kind.Group
	for _, version := range versionsOf(group) {
		if version.Version == "" || version.Version == kind.Version {
			continue
		}
		resource, err := c.Resolve(ctx, version.WithKind(kind.Kind))
		if !apierrors.IsNotFound(err) {
			return resource, err
		}
	}
	return object.Resource{}, notServed
}

// Subresources asks the server which subresources the objects of a kind have, such as "scale".
func (c *Client) Subresources(ctx context.Context, of object.Resource) ([]string, error) {
	described, err := c.describe(ctx, of.GroupVersion())
	if err != nil {
		return nil, fmt.Errorf("looking up the subresources of %s: %w", of.Plural, err)
	}
	var names []string
	for _, r := range described {
		if name, is := strings.CutPrefix(r.Name, of.Plural+"/"); is {
			names = append(names, name)
		}
	}
	return names, nil
}

// describe asks the server for the resources of one version of a group, with their subresources.
func (c *Client) describe(ctx context.Context, version schema.GroupVersion) ([]metav1.APIResource, error) {
	path := "/apis/" + version.String()
	if version.Group == "" {
		path = "/api/" + version.Version
	}
	answer, err := c.Request(http.MethodGet).Path(path).Do(ctx)
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(answer.Body, &list); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return list.APIResources, nil
}

// Plural returns the name of a kind as kubectl prints it, without a request. It is right
// for built-in kinds, and a guess for others.
func Plural(kind schema.GroupVersionKind) string {
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural.GroupResource().String()
}
