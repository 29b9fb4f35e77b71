// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
	"github.com/setpoint-io/setpoint/wire"
)

// Whatever a client sends is answered, and leaves a server that can be listed.
func FuzzRequest(f *testing.F) {
	const (
		collection = "/api/v1/namespaces/ns/configmaps"
		a          = collection + "/a"
		jsonType   = "application/json"
		body       = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","finalizers":["x/y"]},"data":{"k":"v"}}`
	)
	for _, seed := range []struct{ method, path, query, contentType, accept, body string }{
		{http.MethodGet, collection, "limit=1&labelSelector=a%3Db&fieldSelector=metadata.name%3Da", "", jsonType, ""},
		{http.MethodGet, collection, "resourceVersion=2&resourceVersionMatch=Exact", "", wire.Protobuf.MediaType(), ""},
		{http.MethodGet, collection, "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Miwic3RhcnQiOiJucy9hXHUwMDAwIn0", "", jsonType, ""},
		{http.MethodGet, a, "", "", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", ""},
		{http.MethodPost, collection, "dryRun=All&fieldValidation=Strict", jsonType, "", body},
		{http.MethodPost, collection, "", "application/yaml", "", "kind: ConfigMap\napiVersion: v1\nmetadata: {generateName: c}\n"},
		{http.MethodPost, collection, "", wire.Protobuf.MediaType(), "", "k8s\x00\n\x0f\n\x02v1\x12\tConfigMap\x12\x05\n\x03\n\x01d"},
		{http.MethodPut, a, "fieldManager=test", jsonType, "", strings.Replace(body, `"b"`, `"a","resourceVersion":"2"`, 1)},
		{http.MethodPatch, a, "", "application/json-patch+json", "", `[{"op":"test","path":"/metadata/name","value":"a"},{"op":"add","path":"/data","value":{}},{"op":"move","from":"/data","path":"/binaryData"}]`},
		{http.MethodPatch, a, "", "application/merge-patch+json", "", `{"metadata":{"labels":{"x":null}},"data":{"k":"w"}}`},
		{http.MethodPatch, a, "", "application/strategic-merge-patch+json", "", `{"metadata":{"$patch":"replace","finalizers":["x/z"]}}`},
		{http.MethodPatch, a, "fieldManager=test&force=true", "application/apply-patch+yaml", "", "kind: ConfigMap\napiVersion: v1\ndata: {k: u}\n"},
		{http.MethodDelete, a, "gracePeriodSeconds=0&propagationPolicy=Orphan", "", "", ""},
		{http.MethodDelete, a, "", jsonType, "", `{"preconditions":{"uid":"u"}}`},
		{http.MethodDelete, collection, "labelSelector=x+in+(a,b)", "", "", ""},
		{http.MethodPut, "/apis/apps/v1/namespaces/ns/deployments/web/scale", "", jsonType, "", `{"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":3}}`},
		{http.MethodGet, "/apis/fakeapi.example.com/v1/widgets", "fieldSelector=spec.color%3Dred", "", "", ""},
		{http.MethodGet, "/apis", "", "", "", ""},
	} {
		f.Add(seed.method, seed.path, seed.query, seed.contentType, seed.accept, []byte(seed.body))
	}
	f.Fuzz(func(t *testing.T, method, path, query, contentType, accept string, body []byte) {
		api := fakeapi.New(configMaps, pods, namespaces, deployments)
		api.Serve(widgets, fakeapi.WithStatus(), fakeapi.WithFields("spec.color"))
		if err := api.Of(configMaps).Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}); err != nil {
			t.Fatal(err)
		}
		target := &url.URL{Path: path, RawQuery: query}
		if !strings.HasPrefix(path, "/") || target.Query().Has("watch") {
			return // net/http hands no such path over, and a watch goes on
		}
		r := httptest.NewRequest(http.MethodGet, "/", bytes.NewReader(body))
		r.Method, r.URL = method, target
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		if code := w.Code; code < http.StatusOK || code > http.StatusNotImplemented {
			t.Errorf("%s %s?%s: %d %s", method, path, query, code, w.Body)
		}
		for _, resource := range []object.Resource{configMaps, pods, namespaces, deployments, widgets} {
			list(t, api, resource)
		}
	})
}

// list reads all objects of a resource, in both encodings.
func list(t *testing.T, api *fakeapi.Server, resource object.Resource) {
	t.Helper()
	path := "/api/v1/" + resource.Plural
	if resource.Group != "" {
		path = "/apis/" + resource.APIVersion() + "/" + resource.Plural
	}
	for _, accept := range []string{wire.JSON.MediaType(), wire.Protobuf.MediaType() + ", " + wire.JSON.MediaType()} {
		r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		e, err := wire.EncodingOf(w.Header().Get("Content-Type"))
		if err != nil || w.Code != http.StatusOK {
			t.Fatalf("listing %s: %d %s (%v)", resource, w.Code, w.Body, err)
		}
		_, err = wire.List(w.Body, e, 0, func(raw []byte) error { return e.ReadHead(raw, new(wire.Head)) })
		if err != nil {
			t.Fatalf("listing %s: %v", resource, err)
		}
	}
}
