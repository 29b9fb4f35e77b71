// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/setpoint-io/setpoint/adapters/controllerruntime"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var (
	podKind = corev1.SchemeGroupVersion.WithKind("Pod")
	pods    = object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}
	nodes   = object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"}
	gizmos  = object.Resource{Group: "example.com", Version: "v1", Plural: "gizmos", Kind: "Gizmo", Namespaced: true}
)

// world is a server in memory and a cache that reads from it, in a bubble of synctest.
type world struct {
	api    *fakeapi.Server
	mapper *meta.DefaultRESTMapper
	cache  crcache.Cache
}

// inWorld runs a test with a cache that has not been started. The bubble fails if a goroutine of
// the cache is left when the test ends.
func inWorld(t *testing.T, options crcache.Options, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(fakeapi.New(pods, nodes, gizmos))
		options.Mapper = w.mapper
		c, err := controllerruntime.NewCache(w.api.Config(), options)
		if err != nil {
			t.Fatal(err)
		}
		w.cache = c
		test(t, w)
	})
}

// newWorldOf returns a world without a cache.
func newWorldOf(api *fakeapi.Server) *world {
	w := &world{api: api, mapper: meta.NewDefaultRESTMapper(nil)}
	for _, r := range []object.Resource{pods, nodes, gizmos} {
		w.serve(r)
	}
	return w
}

// serve makes the mapper know a resource.
func (w *world) serve(r object.Resource) {
	scope := meta.RESTScopeRoot
	if r.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	plural := schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Plural}
	w.mapper.AddSpecific(r.GroupVersionKind(), plural, plural, scope)
}

// start starts the cache. The returned function stops it.
func (w *world) start(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.cache.Start(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		synctest.Wait()
	}
}

// pod puts a Pod on the server.
func (w *world) pod(t *testing.T, namespace, name string, change ...func(*corev1.Pod)) {
	t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, c := range change {
		c(p)
	}
	if err := w.api.Of(pods).Put(p); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func labelled(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{key: value} }
}

func on(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

// unstructuredOf and metadataOf are empty objects of a kind.
func unstructuredOf(kind schema.GroupVersionKind) *unstructured.Unstructured {
	u := new(unstructured.Unstructured)
	u.SetGroupVersionKind(kind)
	return u
}

func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	m := new(metav1.PartialObjectMetadata)
	m.SetGroupVersionKind(kind)
	return m
}

// selector parses a label selector.
func selector(t *testing.T, text string) labels.Selector {
	t.Helper()
	s, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
