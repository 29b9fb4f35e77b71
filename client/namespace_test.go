// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// A server answers such requests with "could not find the requested resource" or "does not
// allow this method". They are not sent.
func TestAKeyWithoutItsNamespaceIsNamed(t *testing.T) {
	sent := ""
	c := within(t, func(r *http.Request) (*http.Response, error) {
		sent = r.Method + " " + r.URL.Path
		return answer(http.StatusOK, metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}), nil
	})
	ctx, key := t.Context(), object.Key{Name: "web"}
	pods, sites := client.For[*corev1.Pod](c), client.ForResource[*metav1.PartialObjectMetadata](c, websites)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	second := func(_ any, err error) error { return err }
	for _, try := range []struct {
		err  error
		want string
	}{
		{second(pods.Get(ctx, key)), "get pods web: the namespace is missing: pods live in namespaces"},
		{second(pods.Create(ctx, pod)), "post pods: the namespace is missing: pods live in namespaces"},
		{second(pods.Update(ctx, pod)), "put pods web: the namespace is missing: pods live in namespaces"},
		{second(pods.UpdateStatus(ctx, pod)), "put pods/status web: the namespace is missing: pods live in namespaces"},
		{second(sites.Patch(ctx, key, client.Patch{Type: types.MergePatchType, Data: []byte("{}")})), "patch websites.example.com web: the namespace is missing: websites.example.com live in namespaces"},
		{pods.Delete(ctx, key), "delete pods web: the namespace is missing: pods live in namespaces"},
		{pods.DeleteCollection(ctx, client.Selection{}), "delete pods: the namespace is missing: pods live in namespaces"},
	} {
		if try.err == nil || try.err.Error() != try.want {
			t.Errorf("have %v, want %s", try.err, try.want)
		}
		if sent != "" {
			t.Errorf("%s was sent", sent)
		}
	}
	if _, _, err := pods.List(ctx, client.Selection{}); sent != "GET /api/v1/pods" {
		t.Errorf("a list of all namespaces: %q, %v", sent, err)
	}
	if _, err := client.For[*corev1.Node](c).Get(ctx, key); sent != "GET /api/v1/nodes/web" {
		t.Errorf("a kind without namespaces: %q, %v", sent, err)
	}
}
