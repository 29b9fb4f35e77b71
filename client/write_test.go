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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// Options that are handed to several writes belong to the code that made them.
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

// The caller of a watch says what it waits for; a request that waited by itself would hide it.
func TestAWatchIsAskedForOnceAndItsErrorSaysWhenToTryAgain(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Retry-After", "30")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}`))
	}))
	defer server.Close()
	c := newClient(t, &rest.Config{Host: server.URL})
	_, err := c.Watch(t.Context(), pods, client.Selection{}, client.WatchOptions{})
	if seconds, ok := apierrors.SuggestsClientDelay(err); !ok || seconds != 30 || asked != 1 {
		t.Errorf("asked %d times; %v, again after %d s", asked, err, seconds)
	}
}
