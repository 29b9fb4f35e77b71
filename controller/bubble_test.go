// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// bubble is a server of Pods, a client and their informer, where time passes as fast as
// nothing happens.
type bubble struct {
	t       *testing.T
	line    *line
	client  *client.Client
	factory *cache.Factory
	pods    cache.SharedInformer[*corev1.Pod]
	log     lockedBuffer
}

// inBubble runs a test with a server that has Pod ns/parent.
func inBubble(t *testing.T, test func(t *testing.T, b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		b := &bubble{t: t, line: &line{server: fakeapi.New().Serve(podsResource, fakeapi.WithFields("status.unknown")), open: map[int]context.CancelFunc{}}}
		b.add("parent")
		var err error
		if b.client, err = client.New(&rest.Config{Host: "http://in-memory", Transport: b.line}); err != nil {
			t.Fatal(err)
		}
		b.factory = cache.NewFactory(b.client, nil)
		b.pods = cache.Informer[*corev1.Pod](b.factory)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.factory.Run(ctx) }()
		synctest.Wait()
		defer func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("the factory: %v", err)
			}
		}()
		test(t, b)
	})
}

func (b *bubble) add(names ...string) {
	b.t.Helper()
	for _, name := range names {
		if err := b.line.to().Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}); err != nil {
			b.t.Fatal(err)
		}
	}
}

// change gives a Pod an annotation, as somebody else would.
func (b *bubble) change(name string) {
	b.patch(name, map[string]any{"annotations": map[string]any{"changed": "yes"}})
}

// patch changes the metadata of a Pod.
func (b *bubble) patch(name string, metadata map[string]any) {
	b.t.Helper()
	o := b.line.to().Get(key(name))
	have := o.Object["metadata"].(map[string]any)
	text, err := json.Marshal(metadata)
	if err == nil {
		var changes map[string]any
		if err = utiljson.Unmarshal(text, &changes); err == nil {
			maps.Copy(have, changes)
			maps.DeleteFunc(have, func(_ string, value any) bool { return value == nil })
			err = b.line.to().Put(o)
		}
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bubble) logger() controller.Option {
	return controller.Log(slog.New(slog.NewTextHandler(&b.log, nil)))
}

// writtenBy returns the informer of Pods with another client for its writes.
func (b *bubble) writtenBy(c *client.Client) cache.SharedInformer[*corev1.Pod] {
	return cache.Informer[*corev1.Pod](provider{b.factory, c})
}

// provider is a factory with another client for writes.
type provider struct {
	*cache.Factory
	client *client.Client
}

func (p provider) Client() *client.Client { return p.client }

// start runs a controller until stop is called.
func (b *bubble) start(c controller.Runnable) (stop func()) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("the controller: %v", err)
		}
	}
}

// line is the way to a server. It can lead to another server, carry no watches, or
// nothing at all.
type line struct {
	mu        sync.Mutex
	server    *fakeapi.Resource
	open      map[int]context.CancelFunc
	opened    int
	noWatches bool
	dead      bool
	lose      func(*http.Request) bool // answers
}

func (l *line) to() *fakeapi.Resource {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.server
}

// set changes what the line does, and breaks what is open.
func (l *line) set(change func(*line)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
	for _, cancel := range l.open {
		cancel()
	}
	l.open = map[int]context.CancelFunc{}
}

var errBroken = errors.New("broken line")

// RoundTrip implements http.RoundTripper.
func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	watching := r.URL.Query().Get("watch") == "true"
	if l.dead || watching && l.noWatches {
		return nil, errBroken
	}
	ctx, cancel := context.WithCancel(r.Context())
	l.open[l.opened] = cancel
	l.opened++
	answer, err := l.server.RoundTrip(r.WithContext(ctx))
	if err == nil && l.lose != nil && l.lose(r) {
		_ = answer.Body.Close()
		return nil, errBroken
	}
	return answer, err
}

// names are those of the Pods that an informer shows.
func names(pods cache.SharedInformer[*corev1.Pod]) map[string]bool {
	all := map[string]bool{}
	for key := range pods.All() {
		all[key.Name] = true
	}
	return all
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}
