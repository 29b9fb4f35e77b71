// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// fake is a cloud in the test's process. It is reached without a network, so that the test runs in
// a bubble of synctest.
type fake struct {
	mu      sync.Mutex
	buckets map[string]bucket
	lost    int      // the next so many changes are made, and their answers are lost
	refused int      // the next so many changes are refused
	calls   []string // what was asked, in order
}

var errLost = errors.New("the connection was reset")

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := strings.TrimPrefix(r.URL.Path, "/buckets/")
	f.calls = append(f.calls, r.Method+" "+name)
	answer := httptest.NewRecorder()
	if r.Method == http.MethodGet {
		f.answer(answer, name)
		return answer.Result(), nil
	}
	if f.refused > 0 {
		f.refused--
		http.Error(answer, "too many buckets", http.StatusConflict)
		return answer.Result(), nil
	}
	delete(f.buckets, name)
	if r.Method == http.MethodPut {
		var b bucket
		text, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(text, &b)
		}
		if err != nil {
			return nil, err
		}
		f.buckets[name] = b
	}
	if f.lost > 0 {
		f.lost--
		return nil, errLost
	}
	f.answer(answer, name)
	return answer.Result(), nil
}

func (f *fake) answer(w http.ResponseWriter, name string) {
	b, ok := f.buckets[name]
	if !ok {
		http.NotFound(w, nil)
		return
	}
	_ = json.NewEncoder(w).Encode(b) // a recorder has room
}

func (f *fake) with(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// want compares the buckets of the cloud, by their regions, and returns what was asked since the
// last time.
func (f *fake) want(t *testing.T, when string, regions map[string]string) (calls string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	got := map[string]string{}
	for name, b := range f.buckets {
		got[name] = b.Region
	}
	calls, f.calls = strings.Join(f.calls, ", "), nil
	if !maps.Equal(got, regions) {
		t.Fatalf("%s there are the buckets %v, want %v; the calls were %s", when, got, regions, calls)
	}
	return calls
}

func TestBucketsFollowTheirConfigMaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fakeapi.New()
		resource := api.Serve(object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true})
		f := &fake{buckets: map[string]bucket{}}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			c := &cloud{url: "http://cloud.example.com", client: http.Client{Transport: f}}
			if err := run(ctx, api.Config(), c, manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil)))); err != nil {
				t.Error(err)
			}
		})
		defer func() { stop(); running.Wait() }()
		c, err := client.New(api.Config())
		if err != nil {
			t.Fatal(err)
		}
		key := object.Key{Namespace: "shop", Name: "photos"}
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		region := func(to string) {
			t.Helper()
			if err := fakeapi.Change(resource, key, func(m *corev1.ConfigMap) { m.Data = map[string]string{"region": to} }); err != nil {
				t.Fatal(err)
			}
		}

		// The answer to the first call is lost. The operator looks before it does anything else.
		f.with(func() { f.lost = 1 })
		if err := resource.Add(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{label: "true"}},
			Data:       map[string]string{"region": "north"},
		}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if calls := f.want(t, "after a lost answer", map[string]string{"shop--photos": "north"}); calls != "GET shop--photos, PUT shop--photos, GET shop--photos" {
			t.Errorf("the calls were %s", calls)
		}

		// The cloud refuses. Changes of the ConfigMap do not shorten the wait.
		f.with(func() { f.refused = 1 })
		region("south")
		pass(100 * time.Millisecond)
		region("east")
		pass(100 * time.Millisecond)
		if calls := f.want(t, "after a refusal", map[string]string{"shop--photos": "north"}); calls != "PUT shop--photos" {
			t.Errorf("the calls were %s", calls)
		}
		pass(time.Second)
		f.want(t, "after the wait", map[string]string{"shop--photos": "east"})

		// What changes outside is noticed.
		f.with(func() { delete(f.buckets, "shop--photos") })
		pass(recheck + time.Minute)
		f.want(t, "after a look", map[string]string{"shop--photos": "east"})

		// The ConfigMap goes after its bucket.
		f.with(func() { f.lost = 1 })
		if err := client.For[*corev1.ConfigMap](c).Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		f.want(t, "after the end", map[string]string{})
		if keys := resource.Keys(); len(keys) != 0 {
			t.Errorf("there are the ConfigMaps %q", keys)
		}
	})
}
