// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/adapters/controllerruntime"
	"github.com/setpoint-io/setpoint/adapters/internal/methodtest"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// A program that sets HTTPClient has its credentials and its proxy there, and those of the configuration may be wrong.
func TestTheTransportOfHTTPClientCarriesListsAndWatches(t *testing.T) {
	methodtest.Comparison[*world]{Name: "HTTPClient", Run: func(t *testing.T, w *world, seen *methodtest.Transcript) {
		seen.Note("the transport of the configuration is not used")
		w.pod(t, "team-a", "a")
		w.api.Before(refuseWatchLists) // then the cache lists as well
		defer w.start(t)()
		var list corev1.PodList
		if err := w.cache.List(soon(t), &list); err != nil || len(list.Items) != 1 {
			t.Fatalf("have %d Pods, %v", len(list.Items), err)
		}
		w.pod(t, "team-a", "b")
		seen.Note("%v", w.cache.Get(soon(t), crclient.ObjectKey{Namespace: "team-a", Name: "b"}, &corev1.Pod{}))
		for _, r := range w.api.Requests() {
			if got := r.HTTP.Header["Authorization"]; !slices.Equal(got, []string{"Bearer of-the-client"}) {
				t.Errorf("%s has the credentials %q", r, got)
			}
		}
		seen.Note("lists %t, watches %t", w.requests("list") > 0, w.requests("watch") > 0)
	}}.Compare(t, func(t *testing.T, ours bool, run func(*testing.T, *world)) {
		build := crcache.New
		if ours {
			build = controllerruntime.NewCache
		}
		carrier := &carrier{}
		inWorldWith(t, func(config *rest.Config, o crcache.Options) (crcache.Cache, error) {
			carrier.next = endsQuietly{config.Transport}
			o.HTTPClient = &http.Client{Transport: carrier}
			config.Transport, config.BearerToken = noTransport{}, "of-the-configuration"
			return build(config, o)
		}, func(t *testing.T, w *world) {
			run(t, w)
			if got, want := carrier.carried(), len(w.api.Requests()); got != want {
				t.Errorf("the client has carried %d requests, and the server got %d", got, want)
			}
		})
	})
}

// refuseWatchLists answers as a server that does not know sendInitialEvents.
func refuseWatchLists(q *fakeapi.Request) *metav1.Status {
	if q.HTTP.URL.Query().Get("sendInitialEvents") == "" {
		return nil
	}
	return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "sendInitialEvents is forbidden"}
}

// carrier is a transport with credentials of its own, which counts the requests.
type carrier struct {
	next http.RoundTripper

	mu    sync.Mutex
	count int
}

func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.count++
	c.mu.Unlock()
	r = r.Clone(r.Context())
	r.Header.Add("Authorization", "Bearer of-the-client")
	return c.next.RoundTrip(r)
}

func (c *carrier) carried() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// noTransport is a transport that reaches no server.
type noTransport struct{}

func (noTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("the transport of the configuration was used")
}
