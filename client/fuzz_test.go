// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Whatever a server answers, to whatever it is asked: there is an error or there is none, no
// error is longer than what is read of an error's body allows, and nothing panics.
func FuzzAnswersOfAServer(f *testing.F) {
	for _, seed := range []struct {
		code                    uint16
		contentType, retryAfter string
		body                    string
	}{
		{200, "application/json", "", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","resourceVersion":"7"}}`},
		{200, "application/json", "", `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}`},
		{200, "application/json", "", `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}}`},
		{200, "application/json", "", `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[{"resource":"deployments","responseKind":null}]}]}]}`},
		{200, "application/json", "", `{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"version":"v1"}]}]}`},
		{200, "application/json", "", `{"kind":"APIResourceList","resources":[{"name":"widgets","kind":"Widget"}]}`},
		{200, "application/vnd.kubernetes.protobuf", "", "k8s\x00\n\x09\n\x02v1\x12\x03Pod\x12\x00"},
		{200, "text/html", "", "<html>"},
		{429, "application/json", "0", `{"kind":"Status","apiVersion":"v1","status":"Failure","code":429,"details":{"retryAfterSeconds":-1}}`},
		{503, "application/json", "99999999999999999999", `{"kind":"Status","apiVersion":"v1","status":"Failure","details":{"causes":[{}]}}`},
		{404, "text/plain", "-1", "404 page not found"},
		{302, "", "1", ""},
	} {
		f.Add(seed.code, seed.contentType, seed.retryAfter, []byte(seed.body))
	}
	f.Fuzz(func(t *testing.T, code uint16, contentType, retryAfter string, body []byte) {
		if code < 100 || code > 999 {
			return // net/http lets nothing else through
		}
		// It waits for no Retry-After: the context ends with the answer.
		ask := func(do func(context.Context, *client.Client) error) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := within(t, func(*http.Request) (*http.Response, error) {
				if code >= http.StatusMultipleChoices {
					cancel()
				}
				return &http.Response{
					StatusCode: int(code), Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
					Header: http.Header{"Content-Type": {contentType}, "Retry-After": {retryAfter}},
				}, nil
			})
			if err := do(ctx, c); err != nil && len(err.Error()) > 1<<20 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		}
		for _, write := range writings {
			ask(func(ctx context.Context, c *client.Client) error { return write(ctx, client.For[*corev1.Pod](c)) })
		}
		ask(func(ctx context.Context, c *client.Client) error {
			_, err := client.For[*corev1.Pod](c).Get(ctx, object.KeyOf(storedPod()))
			_ = client.Absent(err) || client.AbsentAt(err, object.KeyOf(storedPod())) || client.NamespaceGone(err) || client.Unanswered(err)
			return err
		})
		ask(func(ctx context.Context, c *client.Client) error {
			_, _, err := client.ForResource[*metav1.PartialObjectMetadata](c, pods).List(ctx, client.Selection{MetadataOnly: true})
			return err
		})
		ask(func(ctx context.Context, c *client.Client) error { _, err := c.Discover(ctx); return err })
		ask(func(ctx context.Context, c *client.Client) error {
			_, err := c.Resolve(ctx, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
			return err
		})
		ask(func(ctx context.Context, c *client.Client) error {
			watch, err := c.Watch(ctx, pods, client.Selection{Limit: 1 << 20}, client.WatchOptions{})
			if err != nil {
				return err
			}
			defer watch.Close()
			var event wire.Event
			for err == nil {
				event, err = watch.Next()
				_ = event
			}
			return err
		})
	})
}
