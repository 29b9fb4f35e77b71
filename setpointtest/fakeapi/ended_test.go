// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestARequestWhoseContextEndsFailsWithTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fakeapi.New(configMaps)
		api.Delay(func(*fakeapi.Request) time.Duration { return time.Hour })
		c, err := client.New(api.Config())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := client.For[*corev1.ConfigMap](c).Get(ctx, object.Key{Namespace: "ns", Name: "a"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the answer is %v", err)
		}
	})
}

func TestAnAnswerThatComesAfterTheContextEndedIsNotReturned(t *testing.T) {
	api := fakeapi.New(configMaps)
	cause := errors.New("the caller has enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	api.LoseAnswer(func(*fakeapi.Request) bool { cancel(cause); return false })
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, api.Config().Host+"/api/v1/configmaps", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := api.RoundTrip(request)
	if err == nil {
		response.Body.Close()
	}
	if !errors.Is(err, cause) {
		t.Errorf("the answer is %v", err)
	}
}

func TestTheBodyOfAWatchEndsWithTheContextsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fakeapi.New(configMaps)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, api.Config().Host+"/api/v1/configmaps?watch=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := (&http.Client{Transport: api}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if _, err := io.ReadAll(response.Body); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the body ends with %v", err)
		}
	})
}

// A server that has more to send than the reader takes must not wait for the reader.
func TestABodyThatWaitsToBeReadEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fakeapi.New()
		for _, name := range []string{"a", "b"} {
			o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string]string{"k": strings.Repeat("x", 1<<16)}}
			if err := api.Serve(configMaps).Add(o); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, api.Config().Host+"/api/v1/configmaps", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := api.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		cancel()
		synctest.Wait()
		if _, err := response.Body.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
			t.Errorf("the body ends with %v", err)
		}
	})
}

// noticed is a body that knows whether it was closed.
type noticed struct {
	io.Reader
	closed bool
}

func (n *noticed) Close() error { n.closed = true; return nil }

func TestTheBodyOfARequestIsClosed(t *testing.T) {
	for name, path := range map[string]string{"answered": "/api/v1/namespaces/ns/configmaps", "not served": "/nothing", "lost": "/api/v1/namespaces/lost/configmaps"} {
		t.Run(name, func(t *testing.T) {
			api := fakeapi.New(configMaps)
			api.LoseAnswer(func(q *fakeapi.Request) bool { return q.Key.Namespace == "lost" })
			body := &noticed{Reader: strings.NewReader(`{"metadata":{"name":"a"}}`)}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, api.Config().Host+path, body)
			if err != nil {
				t.Fatal(err)
			}
			if response, err := api.RoundTrip(request); err == nil {
				_, _ = io.Copy(io.Discard, response.Body) // the end of the answer is what counts
				response.Body.Close()
			}
			if !body.closed {
				t.Error("it is open")
			}
		})
	}
}
