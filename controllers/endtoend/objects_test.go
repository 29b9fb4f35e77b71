// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// The tests make hundreds of objects whose making is not under test. These functions do what
// kubectl does with them, without a process for each: starting kubectl costs more than most
// controllers need for their work.

// served are the kinds that each control plane serves. The first test that needs them asks.
var served sync.Map // of *controlplanetest.Cluster to func() ([]client.Served, error)

// resource returns the resource that kubectl knows by a name, such as "job", "pods" or
// "events.events.k8s.io".
func (c *cluster) resource(name string) (object.Resource, error) {
	ctx := context.WithoutCancel(c.t.Context())
	ask, _ := served.LoadOrStore(c.Cluster, sync.OnceValues(func() ([]client.Served, error) { return c.Client.Discover(ctx) }))
	kinds, err := ask.(func() ([]client.Served, error))()
	if err != nil {
		return object.Resource{}, err
	}
	for _, kind := range kinds {
		if name == strings.ToLower(kind.Kind) || name == kind.Plural || name == kind.String() {
			return kind.Resource, nil
		}
	}
	return object.Resource{}, fmt.Errorf("the server serves no %q", name)
}

// about begins a request for an object, which is in the namespace of the test if it is in any.
func (c *cluster) about(method string, r object.Resource, name string) *client.Request {
	request := c.Client.Request(method).Resource(r).Name(name)
	if r.Namespaced {
		request.Namespace(c.namespace)
	}
	return request
}

// manifest applies an object that is written as JSON, as kubectl apply --server-side does.
func (c *cluster) manifest(text string) {
	c.t.Helper()
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		c.t.Fatalf("%v in %s", err, text)
	}
	r, err := c.Client.Resolve(c.t.Context(), o.GroupVersionKind())
	if err != nil {
		c.t.Fatal(err)
	}
	_, err = c.about(http.MethodPatch, r, o.Name).Param("fieldManager", "kubectl").Param("fieldValidation", "Strict").
		Body(string(types.ApplyPatchType), []byte(text)).Do(c.t.Context())
	if err != nil {
		c.t.Fatalf("applying %s: %v", text, err)
	}
}

// status writes the status of an object, which is given as KIND/NAME.
func (c *cluster) status(name, patch string) {
	c.t.Helper()
	kind, name, _ := strings.Cut(name, "/")
	r, err := c.resource(kind)
	if err == nil {
		_, err = c.about(http.MethodPatch, r, name).Subresource("status").Body(string(types.MergePatchType), []byte(patch)).Do(c.t.Context())
	}
	if err != nil {
		c.t.Fatalf("writing the status of %s/%s: %v", kind, name, err)
	}
}

// remove deletes an object at once, and does not wait until it is gone. A clean-up may call it.
func (c *cluster) remove(kind, name string) error {
	r, err := c.resource(kind)
	if err != nil {
		return err
	}
	_, err = c.about(http.MethodDelete, r, name).Param("propagationPolicy", string(metav1.DeletePropagationBackground)).
		Do(context.WithoutCancel(c.t.Context()))
	return err
}

// read lists the objects of a resource in the namespace of the test, as kubectl get does.
func read[T any](c *cluster, resource string) T {
	c.t.Helper()
	var list T
	r, err := c.resource(resource)
	if err != nil {
		c.t.Fatal(err)
	}
	answer, err := c.Client.Request(http.MethodGet).Resource(r).Namespace(c.namespace).Do(c.t.Context())
	if err == nil {
		err = json.Unmarshal(answer.Body, &list)
	}
	if err != nil {
		c.t.Fatalf("listing %s: %v", resource, err)
	}
	return list
}
