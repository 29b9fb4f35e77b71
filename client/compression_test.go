// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/wire"
)

// compressing answers lists and watches with what write writes, compressed if the
// client takes that, in chunks. It is a raw server: fakeapi does not compress, and the tests
// decide when each chunk is sent.
func compressing(t *testing.T, write func(r *http.Request, body io.Writer, flush func())) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", wire.JSON.MediaType())
		chunk := http.NewResponseController(w)
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			write(r, w, func() { _ = chunk.Flush() })
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		write(r, z, func() { _ = z.Flush(); _ = chunk.Flush() })
		_ = z.Close() // of a client that has gone: what it read is what the test looks at
	}))
	t.Cleanup(server.Close)
	return server
}

// both runs a test with a client that negotiates compression, which is what a
// configuration asks for by default, and with one that does not.
func both(t *testing.T, server *httptest.Server, run func(t *testing.T, c *client.Client)) {
	t.Helper()
	for _, disabled := range []bool{false, true} {
		t.Run(fmt.Sprintf("disabled=%v", disabled), func(t *testing.T) {
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			// client-go's transports know of DisableCompression with TLS only.
			run(t, newClient(t, &rest.Config{
				Host: server.URL, DisableCompression: disabled, TLSClientConfig: rest.TLSClientConfig{CAData: ca},
			}))
		})
	}
}

func TestCompressedListsAreReadAsTheyArrive(t *testing.T) {
	const items = 5000
	var compressed []bool // in the order of the requests, which do not overlap
	server := compressing(t, func(r *http.Request, body io.Writer, flush func()) {
		compressed = append(compressed, r.Header.Get("Accept-Encoding") == "gzip")
		fmt.Fprint(body, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[`)
		for i := range items {
			if i > 0 {
				fmt.Fprint(body, ",")
			}
			fmt.Fprintf(body, `{"metadata":{"name":"web-%d"}}`, i)
			if i%1000 == 0 {
				flush()
			}
		}
		fmt.Fprint(body, "]}\n")
	})
	both(t, server, func(t *testing.T, c *client.Client) {
		n := 0
		var head wire.Head
		meta, err := c.List(t.Context(), pods, client.Selection{}, client.ListOptions{}, func(e wire.Encoding, raw []byte) error {
			if err := e.ReadHead(raw, &head); err != nil {
				return err
			}
			if want := fmt.Sprintf("web-%d", n); string(head.Name) != want {
				return fmt.Errorf("item %d is %s", n, head.Name)
			}
			n++
			return nil
		})
		if err != nil || n != items || meta.ResourceVersion != "9" {
			t.Errorf("%d items at %q, %v", n, meta.ResourceVersion, err)
		}
	})
	if len(compressed) != 2 || !compressed[0] || compressed[1] {
		t.Errorf("compression was requested: %v, want [true false]", compressed)
	}
}

// An event is there once the server has sent it, not once a block is full.
func TestCompressedWatchesAreReadAsTheyArrive(t *testing.T) {
	read := make(chan struct{})
	server := compressing(t, func(r *http.Request, body io.Writer, flush func()) {
		for i := range 3 {
			event := metav1.WatchEvent{Type: wire.Added}
			event.Object.Object = pod(fmt.Sprintf("web-%d", i))
			if err := json.NewEncoder(body).Encode(&event); err != nil {
				return
			}
			flush()
			select { // the next one is written only once this one was read
			case <-read:
			case <-r.Context().Done():
				return
			}
		}
	})
	both(t, server, func(t *testing.T, c *client.Client) {
		watch, err := c.Watch(t.Context(), pods, client.Selection{}, client.WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Close()
		if want := strings.HasSuffix(t.Name(), "disabled=false"); watch.Compressed != want {
			t.Errorf("compressed: %v, want %v", watch.Compressed, want)
		}
		for i := range 3 {
			event, err := watch.Next()
			if err != nil {
				t.Fatal(err)
			}
			var head wire.Head
			if err := watch.Encoding.ReadHead(event.Object, &head); err != nil || string(head.Name) != fmt.Sprintf("web-%d", i) {
				t.Errorf("event %d is of %s, %v", i, head.Name, err)
			}
			read <- struct{}{}
		}
		if _, err := watch.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("after the last event: %v, want EOF", err)
		}
	})
}

// A small answer that decompresses to a very large one is given up at the limit.
func TestACompressedObjectBeyondTheLimitTakesNoMoreMemoryThanTheLimit(t *testing.T) {
	const limit = 1 << 20
	fill := bytes.Repeat([]byte("a"), 64<<10)
	server := compressing(t, func(r *http.Request, body io.Writer, _ func()) {
		fmt.Fprint(body, `{"items":[{"x":"`)
		for r.Context().Err() == nil { // until the client has gone
			if _, err := body.Write(fill); err != nil {
				return
			}
		}
	})
	both(t, server, func(t *testing.T, c *client.Client) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := c.List(t.Context(), pods, client.Selection{Limit: limit}, client.ListOptions{}, func(wire.Encoding, []byte) error { return nil })
		runtime.ReadMemStats(&after)
		if !errors.Is(err, wire.ErrTooLarge) {
			t.Errorf("%v, want ErrTooLarge", err)
		}
		// All buffers that the reading grew through, the server's, and both ends of
		// the connection.
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 8*limit {
			t.Errorf("%d bytes were allocated", taken)
		}
	})
}
