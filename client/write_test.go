// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// A server that may have done it and asks to be tried again, and then cannot be reached,
// leaves open whether it did.
func TestAServerThatIsGoneAtTheSecondTryLeavesTheWriteOpen(t *testing.T) {
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.Listener.Close()
		w.Header().Set("Retry-After", "0")
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	c := newClient(t, &rest.Config{Host: server.URL})
	var r recorder
	ctx := client.WithRecorder(context.Background(), &r)
	key := object.Key{Namespace: "ns", Name: "a"}
	_, err := client.ForResource[*corev1.Pod](c, pods).Patch(ctx, key, client.Patch{Data: []byte(`{}`)})
	if !client.Unanswered(err) {
		t.Errorf("the write is not open: %v", err)
	}
	if w := r.one(t); !w.Unknown {
		t.Errorf("recorded: %+v", w)
	}
}

// Options that are handed to several writes belong to who made them.
func TestOptionsAreNotWrittenTo(t *testing.T) {
	_, c := start(t)
	options := append(make([]client.WriteOption, 0, 4), client.FieldManager("me"))
	typed := client.ForResource[*corev1.Pod](c, pods)
	var tasks sync.WaitGroup
	for range 4 {
		tasks.Go(func() {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
			_, _ = typed.UpdateStatus(context.Background(), p, options...)
			_, _ = typed.Apply(context.Background(), object.KeyOf(p), "me", p, options...)
		})
	}
	tasks.Wait()
	if options[:2][1] != nil {
		t.Error("an option was added to the caller's")
	}
}
