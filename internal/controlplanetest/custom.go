// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest"
)

// Definitions are the custom kinds of a server.
var Definitions = object.Resource{
	Group: "apiextensions.k8s.io", Version: "v1", Plural: "customresourcedefinitions", Kind: "CustomResourceDefinition",
}

// Define creates the definition of a custom kind with some versions, or with that of r for
// none, and waits until the server serves it. The server stores objects in the last version.
// A second call for a kind changes its versions.
func (c *Cluster) Define(t testing.TB, r object.Resource, versions ...string) {
	t.Helper()
	if len(versions) == 0 {
		versions = []string{r.Version}
	}
	c.define(t, r, CustomVersions(versions...))
	for _, version := range versions {
		in := r
		in.Version = version
		c.AwaitServed(t, in)
	}
}

// DefineScaled creates the definition of a custom kind whose objects have the subresource scale: their
// sizes in spec.replicas and status.replicas, and their selector as a text in status.selector.
func (c *Cluster) DefineScaled(t testing.TB, r object.Resource) {
	t.Helper()
	versions := CustomVersions(r.Version)
	versions[0]["subresources"] = map[string]any{"scale": map[string]any{
		"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector",
	}}
	c.define(t, r, versions)
	c.AwaitServed(t, r)
}

// define creates or changes the definition of a custom kind.
func (c *Cluster) define(t testing.TB, r object.Resource, versions []map[string]any) {
	t.Helper()
	scope := "Cluster"
	if r.Namespaced {
		scope = "Namespaced"
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": Definitions.APIVersion(), "kind": Definitions.Kind, "metadata": map[string]any{"name": r.String()},
		"spec": map[string]any{
			"group": r.Group, "scope": scope, "versions": versions,
			"names": map[string]any{"plural": r.Plural, "kind": r.Kind, "singular": strings.ToLower(r.Kind)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Client.Request(http.MethodPatch).Resource(Definitions).Name(r.String()).
		Param("fieldManager", "test").Body("application/apply-patch+yaml", body).Do(t.Context())
	if err != nil {
		t.Fatalf("defining %s: %v", r, err)
	}
}

// Undefine deletes a custom kind with all its objects, and waits until the server has
// forgotten it. For a moment the server still treats a deleted definition as one that is
// being deleted, and would refuse the objects of a new definition of that name. A clean-up
// may call it after the test has ended.
func (c *Cluster) Undefine(t testing.TB, r object.Resource) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	_, err := c.Client.Request(http.MethodDelete).Resource(Definitions).Name(r.String()).Do(ctx)
	if err != nil {
		t.Fatalf("undefining %s: %v", r, err)
	}
	setpointtest.Eventually(t, "the definition of "+r.String()+" is gone", func() error {
		_, err := c.Client.Request(http.MethodGet).Resource(Definitions).Name(r.String()).Do(ctx)
		return isNotFound(err)
	})
	setpointtest.Eventually(t, r.String()+" is not served", func() error { return isNotFound(c.list(t, r)) })
}

// isNotFound returns nil if err says that the server does not know what it was asked for, and
// else what the server answers. A server that begins or ends to serve a kind answers with
// several other errors for a moment, none of which says whether the kind is there.
func isNotFound(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		return errors.New("the server has it")
	}
	return err
}

// AwaitServed waits until a kind can be listed, which is a moment after its definition is
// established.
func (c *Cluster) AwaitServed(t testing.TB, r object.Resource) {
	t.Helper()
	setpointtest.Eventually(t, r.APIVersion()+" "+r.Plural+" is served", func() error { return c.list(t, r) })
}

// list lists the objects of a kind, for the error only.
func (c *Cluster) list(t testing.TB, r object.Resource) error {
	_, err := c.Client.Request(http.MethodGet).Resource(r).Do(context.WithoutCancel(t.Context()))
	return err
}

// CustomVersions returns the versions of a definition of a custom kind. The server serves all
// of them, stores the last one, and accepts every field.
func CustomVersions(names ...string) []map[string]any {
	var all []map[string]any
	for i, name := range names {
		all = append(all, map[string]any{
			"name": name, "served": true, "storage": i == len(names)-1,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		})
	}
	return all
}
