// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
	"github.com/setpoint-io/setpoint/wire"
)

func TestAnItemIsDecodedIntoOtherTypesOfItsKind(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(t, "a", func(p *corev1.Pod) { p.Spec.NodeName = "node-1" })
		protobuf := cache.InformerOf(w.factory, &corev1.Pod{})
		json := cache.InformerOf(w.factory, new(unstructured.Unstructured), cache.OfKind(corev1.SchemeGroupVersion.WithKind("Pod")))
		defer w.run(t)()
		key := object.Key{Namespace: "team-a", Name: "a"}

		item := json.Snapshot().Get(key)
		var pod corev1.Pod
		if err := item.DecodeInto(&pod); err != nil || item.Encoding() != wire.JSON || pod.Spec.NodeName != "node-1" || pod.Name != "a" {
			t.Errorf("JSON as a Pod: %v, %s %s on %s", err, item.Encoding(), pod.Name, pod.Spec.NodeName)
		}
		item = protobuf.Snapshot().Get(key)
		var m metav1.PartialObjectMetadata
		if err := item.DecodeInto(&m); err != nil || item.Encoding() != wire.Protobuf || m.Name != "a" || m.UID == "" {
			t.Errorf("protobuf as metadata: %v, %s %v", err, item.Encoding(), m)
		}
		if err := item.DecodeInto(new(unstructured.Unstructured)); err == nil || !strings.Contains(err.Error(), "the type has no protobuf form") {
			t.Errorf("protobuf as an unstructured object: %v", err)
		}
		if err := (cache.Item[object.Object]{}).DecodeInto(&pod); err == nil {
			t.Error("an item that does not exist was decoded")
		}
	})
}

func TestMetadataHasTheKindOfItsObjects(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(t, "a")
		kind := corev1.SchemeGroupVersion.WithKind("Pod")
		pods := cache.InformerOf(w.factory, new(metav1.PartialObjectMetadata), cache.OfKind(kind))
		defer w.run(t)()
		m, err := pods.Get(object.Key{Namespace: "team-a", Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.GetObjectKind().GroupVersionKind(); got != kind {
			t.Errorf("got the kind %s", got)
		}
	})
}

// sending is a transport.
type sending func(*http.Request) (*http.Response, error)

func (f sending) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAnInformerOfAResourceNeedsNoDiscovery(t *testing.T) {
	inWorld(t, func(t *testing.T, _ *world) {
		widgets := object.Resource{Group: "example.com", Version: "v1", Plural: "widgetz", Kind: "Widget", Namespaced: true}
		api := fakeapi.New(widgets)
		var others []string
		c, err := client.New(api.Config(), client.WithTransport(sending(func(r *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, "/widgetz") {
				others = append(others, r.URL.Path)
			}
			return api.RoundTrip(r)
		})))
		if err != nil {
			t.Fatal(err)
		}
		w := &world{factory: cache.NewFactory(c, nil)}
		informer := cache.InformerOf(w.factory, new(unstructured.Unstructured), cache.OfResource(widgets))
		defer w.run(t)()
		<-informer.Synced()
		if len(others) > 0 {
			t.Errorf("the server got requests for %v", others)
		}
	})
}

func TestAnInformerWithoutBookmarksRequestsNone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(t, "a")
		informer := cache.InformerOf(w.factory, &corev1.Pod{}, cache.WithoutBookmarks())
		defer w.run(t)()
		<-informer.Synced()
		synctest.Wait()
		watched := false
		for _, r := range w.server.Requests() {
			if r.HTTP.URL.Query().Has("allowWatchBookmarks") {
				t.Errorf("the server got %s", r.HTTP.URL)
			}
			watched = watched || r.HTTP.URL.Query().Get("watch") == "true"
		}
		if !watched || informer.Snapshot().Len() != 1 {
			t.Errorf("the server got %v; the informer has %d objects", w.server.Calls(), informer.Snapshot().Len())
		}
	})
}
