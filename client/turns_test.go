// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
)

// A burst of requests does not go to the server all at once, watches do not stand in
// its way, and who gives up waiting has not sent anything.
func TestRequestsTakeTurnsAndStreamsDoNot(t *testing.T) {
	var now, most, all atomic.Int64
	full, open := make(chan struct{}), make(chan struct{})
	filled := sync.OnceFunc(func() { close(full) }) // 64 are on their way more than once
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/stream" {
			_, _ = w.Write([]byte(`{}`))
			return
		}
		all.Add(1)
		if n := now.Add(1); n == 64 {
			filled()
		}
		for n := now.Load(); n > most.Load(); n = now.Load() {
			most.Store(n)
		}
		<-open
		now.Add(-1)
		_, _ = w.Write([]byte(`{}`))
	}))
	defer server.Close()
	c, err := client.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	var tasks sync.WaitGroup
	for range 300 {
		tasks.Go(func() {
			if _, err := c.Request(http.MethodGet).Path("/x").Do(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	<-full
	stream, err := c.Request(http.MethodGet).Path("/stream").Stream(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Body.Close(); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	before := all.Load()
	if _, err := c.Request(http.MethodPost).Path("/x").Do(ended); err == nil || client.Unanswered(err) {
		t.Errorf("a request that gave up before its turn: %v", err)
	}
	if all.Load() != before {
		t.Error("it was sent")
	}
	close(open)
	tasks.Wait()
	if most.Load() > 64 || all.Load() != 300 {
		t.Errorf("%d at once, %d in all", most.Load(), all.Load())
	}
}
