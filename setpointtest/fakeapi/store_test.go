// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestAnObjectThatATestHasStoredIsTheServers(t *testing.T) {
	api := fakeapi.New()
	served := api.Serve(gadgets)
	own := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
	own.SetNamespace("ns")
	own.SetName("a")
	if err := served.Put(own); err != nil {
		t.Fatal(err)
	}
	own.Object["spec"].(map[string]any)["size"] = int64(2)
	own.SetResourceVersion("7")
	stored := served.Get(object.Key{Namespace: "ns", Name: "a"})
	if size, _, _ := unstructured.NestedInt64(stored.Object, "spec", "size"); size != 1 || stored.GetResourceVersion() == "7" {
		t.Errorf("the server has %v", stored.Object)
	}
}

func TestBookmarksComeAsOftenAsATestWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fakeapi.New(configMaps)
		api.BookmarkEvery = time.Second
		c, err := client.New(api.Config())
		if err != nil {
			t.Fatal(err)
		}
		stream, err := c.Request(http.MethodGet).Resource(configMaps).Param("watch", "true").
			Param("allowWatchBookmarks", "true").Param("resourceVersion", api.ResourceVersion()).Stream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Body.Close()
		began := time.Now()
		for range 3 {
			if _, err := stream.Body.Read(make([]byte, 1<<10)); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("three bookmarks came in %s", took)
		}
	})
}
