// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package setpointtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// Apply has the cluster hold the objects of manifests, which are files of YAML documents
// or JSON, as kubectl apply --server-side does. namespace is that of objects which name
// none. Where one defines a custom kind, Apply waits until the server serves it.
func (e *Environment) Apply(t testing.TB, namespace string, files ...string) {
	t.Helper()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			err = e.apply(t.Context(), namespace, text)
		}
		if err != nil {
			t.Fatalf("applying %s: %v", file, err)
		}
	}
}

func (e *Environment) apply(ctx context.Context, namespace string, text []byte) error {
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &o.Object); err != nil {
			return err
		}
		if len(o.Object) == 0 {
			continue // a comment
		}
		if err := e.applyOne(ctx, namespace, o); err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
}

func (e *Environment) applyOne(ctx context.Context, namespace string, o *unstructured.Unstructured) error {
	resource, err := e.Client.Resolve(ctx, o.GroupVersionKind())
	if err != nil {
		return err
	}
	if resource.Namespaced && o.GetNamespace() == "" {
		o.SetNamespace(namespace)
	}
	_, err = client.ForResource[*unstructured.Unstructured](e.Client, resource).Apply(ctx, object.KeyOf(o), "setpointtest", o, client.Force())
	if err != nil || resource.Group != "apiextensions.k8s.io" {
		return err
	}
	for _, kind := range defined(o) {
		if err := wait(func() error {
			_, err := e.Client.Request(http.MethodGet).Resource(kind).Do(ctx)
			return err
		}); err != nil {
			return fmt.Errorf("%s is not served after %s: %w", kind, Patience, err)
		}
	}
	return nil
}

// defined are the kinds that a CustomResourceDefinition has the server serve.
func defined(definition *unstructured.Unstructured) []object.Resource {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var kinds []object.Resource
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if name, _ := version["name"].(string); version["served"] == true {
			kinds = append(kinds, object.Resource{Group: group, Version: name, Plural: plural})
		}
	}
	return kinds
}
