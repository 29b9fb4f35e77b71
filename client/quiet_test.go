// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// Clients of equal configurations share a quiet connection, over which HTTP/2 goes with TLS, in large and small pieces. One whose configuration says how to dial
// keeps that.
func TestQuietConnectionsAreSharedAndLeaveAloneWhoDials(t *testing.T) {
	const large = 3 << 20
	var accepted atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("a request came by %s", r.Proto)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"a","name":"b"},"data":{"large":%q}}`, strings.Repeat("x", large))
	}))
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			accepted.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}}
	get := func(config *rest.Config) {
		t.Helper()
		c, err := client.New(config, client.QuietConnections())
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			m, err := client.For[*corev1.ConfigMap](c).Get(t.Context(), object.Key{Namespace: "a", Name: "b"})
			if err != nil || len(m.Data["large"]) != large {
				t.Fatalf("%d bytes of data: %v", len(m.Data["large"]), err)
			}
		}
	}
	get(config)
	get(rest.CopyConfig(config))
	if n := accepted.Load(); n != 1 {
		t.Errorf("two clients of one configuration made %d connections", n)
	}
	dialed := 0
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialed++
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	get(config)
	if dialed != 1 || accepted.Load() != 2 {
		t.Errorf("the configuration's own Dial was called %d times, and the server has %d connections; want 1 and 2", dialed, accepted.Load())
	}
	// One that carries its own transport sends nothing by way of the network.
	config = &rest.Config{Host: "http://server.invalid", Transport: alone{}}
	c, err := client.New(config, client.QuietConnections())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.For[*corev1.ConfigMap](c).Get(t.Context(), object.Key{Namespace: "a", Name: "b"}); err == nil || accepted.Load() != 2 {
		t.Errorf("a transport of its own: %v, %d connections", err, accepted.Load())
	}
}

// alone is a transport that refuses each request.
type alone struct{}

func (alone) RoundTrip(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }
