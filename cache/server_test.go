// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/object"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// runFactory runs a factory until the test ends.
func runFactory(t *testing.T, c *client.Client) *cache.Factory {
	t.Helper()
	f := cache.NewFactory(c, nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f
}

// expect takes an event that must come.
func expect(t *testing.T, events <-chan string, want string) {
	t.Helper()
	select {
	case got := <-events:
		if got != want {
			t.Fatalf("told %q, want %q", got, want)
		}
	case <-time.After(2 * time.Minute):
		t.Fatalf("waited in vain for %q", want)
	}
}

func tell[T object.Object](t *testing.T, i cache.SharedInformer[T]) <-chan string {
	t.Helper()
	events := make(chan string, 100)
	_, err := i.AddHandler(func(e cache.Event[T]) { events <- fmt.Sprint(e.Kind, " ", e.Key().Name) }, cache.HandlerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestRealServerIsFollowedOverProtobuf(t *testing.T) {
	cluster := shared.Get(t)
	namespace := cluster.Namespace(t)
	maps := cache.Informer[*corev1.ConfigMap](runFactory(t, cluster.Client), cache.InNamespace(namespace), cache.WithLabels("kept=yes"))
	events := tell(t, maps)
	view := client.For[*corev1.ConfigMap](cluster.Client)
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a", Labels: map[string]string{"kept": "yes"}}}
	made, err := view.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, events, "Added a")
	seen, err := maps.Get(object.KeyOf(made))
	if err != nil || seen.UID != made.UID || seen.ManagedFields != nil {
		t.Errorf("%v, %v", seen, err)
	}
	made.Data = map[string]string{"x": "1"}
	if made, err = view.Update(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	expect(t, events, "Updated a")
	// Out of the selection is gone, into it is new.
	made.Labels = nil
	if made, err = view.Update(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	expect(t, events, "Deleted a")
	made.Labels = map[string]string{"kept": "yes"}
	if _, err = view.Update(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	expect(t, events, "Added a")
	if err := view.Delete(t.Context(), object.KeyOf(made)); err != nil {
		t.Fatal(err)
	}
	expect(t, events, "Deleted a")
}

// A custom kind, over JSON, whose definition comes, goes and comes again while an
// informer watches.
func TestCustomKindIsFollowedThroughTheLifeOfItsDefinition(t *testing.T) {
	cluster := shared.Get(t)
	namespace := cluster.Namespace(t)
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	widgets := cache.Informer[*unstructured.Unstructured](runFactory(t, cluster.Client), cache.OfKind(kind))
	events := tell(t, widgets)
	definitions := client.ForResource[*unstructured.Unstructured](cluster.Client, object.Resource{
		Group: "apiextensions.k8s.io", Version: "v1", Plural: "customresourcedefinitions", Kind: "CustomResourceDefinition"})
	view := client.ForResource[*unstructured.Unstructured](cluster.Client, object.Resource{
		Group: kind.Group, Version: kind.Version, Plural: "widgets", Kind: kind.Kind, Namespaced: true})

	for _, name := range []string{"first", "second"} {
		if _, err := definitions.Create(t.Context(), definition(kind)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the definition to be served", func() (bool, error) {
			_, err := view.Create(t.Context(), widget(namespace, name, 1))
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return err == nil, err
		})
		expect(t, events, "Added "+name)
		item := widgets.Snapshot().Get(object.Key{Namespace: namespace, Name: name})
		o, err := item.Object()
		if err != nil {
			t.Fatal(err)
		}
		if size, _, err := unstructured.NestedInt64(o.Object, "spec", "size"); err != nil || size != 1 {
			t.Errorf("size %d, %v", size, err)
		}
		if err := definitions.Delete(t.Context(), object.Key{Name: "widgets.example.com"}); err != nil {
			t.Fatal(err)
		}
		expect(t, events, "Deleted "+name)
		eventually(t, "the definition to be gone", func() (bool, error) {
			_, err := definitions.Get(t.Context(), object.Key{Name: "widgets.example.com"})
			return apierrors.IsNotFound(err), nil
		})
	}
}

// eventually asks until f is true.
func eventually(t *testing.T, what string, f func() (bool, error)) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		done, err := f()
		switch {
		case err != nil:
			t.Fatalf("waiting for %s: %v", what, err)
		case done:
			return
		case time.Now().After(end):
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func widget(namespace, name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": map[string]any{"size": size},
	}}
}

func definition(kind schema.GroupVersionKind) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "widgets." + kind.Group},
		"spec": map[string]any{
			"group": kind.Group, "scope": "Namespaced",
			"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": kind.Kind, "listKind": kind.Kind + "List"},
			"versions": []any{map[string]any{
				"name": kind.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}
}
