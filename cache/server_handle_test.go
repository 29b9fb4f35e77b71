// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// provider has a client of its own beside the one of the informers.
type provider struct {
	*cache.Factory
	client *client.Client
}

func (p provider) Client() *client.Client { return p.client }

// said keeps the requests that pass.
type said struct {
	next http.RoundTripper
	all  []string
}

func (s *said) RoundTrip(r *http.Request) (*http.Response, error) {
	s.all = append(s.all, r.Method+" "+r.URL.RequestURI())
	return s.next.RoundTrip(r)
}

// One handle reads from the cache and writes to the server, with the client of
// its host.
func TestOneHandleReadsFromTheCacheAndWritesToTheServer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		through := &said{next: w.server}
		own, err := client.New(&rest.Config{Host: "http://in-memory", Transport: through})
		if err != nil {
			t.Fatal(err)
		}
		pods := cache.Informer[*corev1.Pod](provider{w.factory, own}).With(client.FieldManager("me"))
		defer w.run(t)()
		synctest.Wait()
		key := object.Key{Namespace: "ns", Name: "a"}
		made, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if o, err := pods.Get(key); err != nil || o.UID != made.UID {
			t.Fatalf("the cache has %v, %v", o, err)
		}
		o := made.DeepCopy()
		o.Status.Phase = corev1.PodRunning
		if o, err = pods.UpdateStatus(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		o.Labels = map[string]string{"a": "b"}
		if _, err = pods.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"c": "d"}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pods.Patch(t.Context(), key, patch); err != nil {
			t.Fatal(err)
		}
		if _, err := pods.Sub("status").Patch(t.Context(), key, patch); err != nil {
			t.Fatal(err)
		}
		config := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a", "labels": map[string]any{"e": "f"}}}
		if _, err := pods.Apply(t.Context(), key, "other", config); err != nil {
			t.Fatal(err)
		}
		if o, err = pods.Server().Get(t.Context(), key); err != nil || o.Labels["a"] != "b" || o.Labels["c"] != "d" || o.Labels["e"] != "f" || o.Status.Phase != corev1.PodRunning {
			t.Fatalf("the server has %v, %v", o, err)
		}
		if err := pods.Delete(t.Context(), key, client.IfUID(made.UID)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if pods.Snapshot().Len() != 0 {
			t.Error("the cache shows the Pod that was deleted")
		}
		want := []string{
			"POST /api/v1/namespaces/ns/pods?fieldManager=me",
			"PUT /api/v1/namespaces/ns/pods/a/status?fieldManager=me",
			"PUT /api/v1/namespaces/ns/pods/a?fieldManager=me",
			"PATCH /api/v1/namespaces/ns/pods/a?fieldManager=me",
			"PATCH /api/v1/namespaces/ns/pods/a/status?fieldManager=me",
			"PATCH /api/v1/namespaces/ns/pods/a?fieldManager=other",
			"GET /api/v1/namespaces/ns/pods/a",
			"DELETE /api/v1/namespaces/ns/pods/a",
		}
		if !slices.Equal(through.all, want) {
			t.Errorf("its client sent\n%q, want\n%q", through.all, want)
		}
		pods.Release()
	})
}

// A type that does not say its kind writes the kind that was asked for.
func TestOneHandleOfAKindThatTheTypeDoesNotSay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		kind := corev1.SchemeGroupVersion.WithKind("Pod")
		pods := cache.Informer[*unstructured.Unstructured](w.factory, cache.OfKind(kind))
		defer w.run(t)()
		synctest.Wait()
		o := &unstructured.Unstructured{}
		o.SetNamespace("ns")
		o.SetName("a")
		if _, err := pods.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got, err := pods.Get(object.Key{Namespace: "ns", Name: "a"}); err != nil || got.GetKind() != "Pod" {
			t.Errorf("the cache has %v, %v", got, err)
		}
	})
}
