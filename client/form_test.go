// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// forms notes the media types of requests, and whether a body is JSON.
type forms struct {
	next http.RoundTripper

	mu   sync.Mutex
	seen []string
}

func (f *forms) RoundTrip(r *http.Request) (*http.Response, error) {
	form := r.Header.Get("Accept") + " " + r.Header.Get("Content-Type")
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if !strings.HasPrefix(string(body), "{") {
			form += " protobuf"
		}
	}
	f.mu.Lock()
	f.seen = append(f.seen, form)
	f.mu.Unlock()
	return f.next.RoundTrip(r)
}

func TestAClientThatIsToldSoSpeaksJSONAlone(t *testing.T) {
	for contentType, protobuf := range map[string]bool{"": true, "application/json": false, "application/vnd.kubernetes.protobuf": true, "text/plain": true} {
		server := fakeapi.New().Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
		wire := &forms{next: server}
		config := &rest.Config{Host: "http://in-memory", Transport: wire}
		config.ContentType = contentType
		c, err := client.New(config)
		if err != nil {
			t.Fatal(err)
		}
		pods := client.For[*corev1.Pod](c)
		pod, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pods.With(client.MetadataAnswer()).Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if _, _, err := pods.List(t.Context(), client.Selection{Namespace: "ns"}); err != nil {
			t.Fatal(err)
		}
		for _, form := range wire.seen {
			if strings.Contains(form, "protobuf") != protobuf {
				t.Errorf("with the content type %q a request has the form %s", contentType, form)
			}
		}
	}
}
