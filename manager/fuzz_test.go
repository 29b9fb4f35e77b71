// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// fuzzed returns a manager of a server that serves nothing.
func fuzzed(t testing.TB) *Manager {
	t.Helper()
	m, err := New(fakeapi.New().Config(), Log(slog.New(slog.DiscardHandler)), Instance("a"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// FuzzRequest holds that the pages answer every request, whatever its path and query are.
func FuzzRequest(f *testing.F) {
	for _, path := range []string{
		"/livez", "/healthz?exclude=a&exclude=%zz&verbose", "/readyz/server", "/readyz/%1b", "/metrics", "/debug/controllers?limit=-1",
		"/debug/informers", "/debug/runs?kind=a&name=%00&limit=1", "/debug/runs?uid=u&format=json&origins", "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/%2e%2e", "//metrics", "/%6detrics", "*",
	} {
		for _, header := range []string{"", "Authorization: Bearer x\r\n", "Authorization: Basic \r\n", "X-Remote-User: root\r\n"} {
			f.Add([]byte("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + header + "\r\n"))
		}
	}
	f.Add([]byte("POST /livez HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc"))
	m := fuzzed(f)
	m.servings = []asked{{listener: nowhere{}, options: serving.Options{Plain: true, Profiling: true}}}
	if err := m.prepare(&m.servings[0]); err != nil {
		f.Fatal(err)
	}
	m.addPages(m.servings[0].server)
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil || strings.HasPrefix(r.URL.Path, "/debug/pprof/") { // a profile takes its time
			return
		}
		w := httptest.NewRecorder()
		m.servings[0].server.Handler().ServeHTTP(w, r)
		if text := w.Body.String(); !utf8.ValidString(text) {
			t.Errorf("%s is answered by %q", r.URL, text)
		}
	})
}

// nowhere is a listener on a loopback address to which nobody connects.
type nowhere struct{ net.Listener }

func (nowhere) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 10257} }

// FuzzLeftByTheLeader holds that what the leader before left may be any text.
func FuzzLeftByTheLeader(f *testing.F) {
	for _, text := range []string{`{"Pod":"12"}`, `{"Pod":"-1","":"x"}`, `{"Pod":"999999999999999999999999"}`, `nil`, "\xff"} {
		f.Add(text)
	}
	m := fuzzed(f)
	f.Fuzz(func(_ *testing.T, text string) { m.catchUp(context.Background(), text) })
}
