// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// A burst of requests does not go to the server all at once, watches do not stand in its
// way, and a caller that gives up waiting has not sent anything.
func TestRequestsTakeTurnsAndStreamsDoNot(t *testing.T) {
	var now, most, all atomic.Int64
	full, open := make(chan struct{}), make(chan struct{})
	filled := sync.OnceFunc(func() { close(full) }) // 64 are on their way more than once
	server, c := start(t)
	if err := server.Add(pod("a")); err != nil {
		t.Fatal(err)
	}
	server.Before(func(q *fakeapi.Request) *metav1.Status {
		if q.Verb == "watch" {
			return nil
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
		return nil
	})
	one := func(method string) *client.Request {
		return c.Request(method).Resource(pods).Key(object.KeyOf(pod("a")))
	}
	var tasks sync.WaitGroup
	for range 300 {
		tasks.Go(func() {
			if _, err := one(http.MethodGet).Do(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	<-full
	stream, err := c.Request(http.MethodGet).Resource(pods).Param("watch", "true").Stream(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Body.Close(); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	before := all.Load()
	if _, err := one(http.MethodDelete).Do(ended); err == nil || client.Unanswered(err) {
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
