// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// plainServer has one Pod, and knows one form of it: JSON. As an aggregated server that is
// built without the others does, it answers 406 to requests that take nothing else. fakeapi
// has all forms.
func plainServer(t *testing.T) *client.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, body := http.StatusOK, any(storedPod())
		switch {
		case !slices.Contains(strings.Split(r.Header.Get("Accept"), ","), "application/json"):
			code, body = http.StatusNotAcceptable, failure(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable)
		case r.URL.Query().Get("watch") == "true":
			body = map[string]any{"type": "ADDED", "object": storedPod()}
		case strings.HasSuffix(r.URL.Path, "/pods"):
			body = corev1.PodList{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []corev1.Pod{*storedPod()},
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(server.Close)
	return newClient(t, &rest.Config{Host: server.URL})
}

func TestMetadataIsReadOfAServerThatHasNoFormForIt(t *testing.T) {
	c := plainServer(t)
	view := client.ForResource[*metav1.PartialObjectMetadata](c, pods)
	key := object.KeyOf(storedPod())
	is := func(what string, o *metav1.PartialObjectMetadata, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		} else if o.UID != "uid-a" || o.ResourceVersion != "7" || o.Labels["app"] != "web" {
			t.Errorf("%s: %+v", what, o)
		}
	}
	one, err := view.Get(t.Context(), key)
	is("get", one, err)
	if list, version, err := view.List(t.Context(), client.Selection{MetadataOnly: true}); err != nil || len(list) != 1 || version != "9" {
		t.Errorf("list: %v at %s, %v", list, version, err)
	} else {
		is("list", list[0], nil)
	}
	one, err = view.Patch(t.Context(), key, client.Patch{Type: "application/merge-patch+json", Data: []byte(`{}`)})
	is("patch", one, err)
	watch, err := c.Watch(t.Context(), pods, client.Selection{MetadataOnly: true}, client.WatchOptions{})
	if err != nil {
		t.Fatalf("watch: %v", err)
	}
	defer watch.Close()
	event, err := watch.Next()
	if err != nil || event.Type != wire.Added {
		t.Fatalf("watch: %+v, %v", event, err)
	}
	var o metav1.PartialObjectMetadata
	err = watch.Encoding.Decode(event.Object, &o)
	is("watch", &o, err)

	whole, err := client.For[*corev1.Pod](c).Update(t.Context(), storedPod(), client.MetadataAnswer())
	if err != nil || whole.UID != "uid-a" || whole.Kind != "Pod" {
		t.Errorf("update with a metadata answer: %+v, %v", whole, err)
	}
	if err := view.Delete(t.Context(), key); err != nil {
		t.Errorf("delete: %v", err)
	}
}
