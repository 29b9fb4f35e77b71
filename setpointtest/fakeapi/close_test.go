// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// watchAgain watches until ctx ends. It calls began when the server answers the first
// watch.
func watchAgain(ctx context.Context, t *testing.T, url string, began func()) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for ctx.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Error(err)
			return
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			continue
		}
		began()
		_, _ = io.Copy(io.Discard, response.Body) // that it is cut is the point
		response.Body.Close()
	}
}

func TestCloseDoesNotWaitForClientsThatWatchAgain(t *testing.T) {
	for range 20 {
		api := fakeapi.New(configMaps).Listen()
		ctx, cancel := context.WithCancel(t.Context())
		var first, all sync.WaitGroup
		for range 8 {
			first.Add(1)
			all.Go(func() {
				watchAgain(ctx, t, api.Config().Host+"/api/v1/configmaps?watch=true", sync.OnceFunc(first.Done))
			})
		}
		first.Wait()
		closed := make(chan struct{})
		go func() {
			api.Close()
			close(closed)
		}()
		select {
		case <-closed:
		case <-time.After(15 * time.Second):
			t.Error("Close still waits")
		}
		cancel() // which ends the watches, and so the Close that waits for them
		all.Wait()
		<-closed
		if t.Failed() {
			return
		}
	}
}

func TestAClosedServerBreaksRequestsOffWithinTheProcess(t *testing.T) {
	api := fakeapi.New(configMaps)
	api.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, api.Config().Host+"/api/v1/configmaps", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := api.RoundTrip(request)
	if err == nil {
		response.Body.Close()
		t.Error("it answered")
	}
}
