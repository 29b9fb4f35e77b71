// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/wire"
)

// answering answers every request with the same bytes, which the fuzzer chooses.
type answering struct {
	code int
	kind string
	body []byte
}

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	return &http.Response{
		StatusCode: a.code, Request: r, Header: http.Header{"Content-Type": {a.kind}}, Body: io.NopCloser(bytes.NewReader(a.body)),
	}, nil
}

// FuzzRequest holds that every request is answered, and that an unknown user gets no page but
// those of health.
func FuzzRequest(f *testing.F) {
	for _, path := range []string{
		"/livez", "/healthz?exclude=a&exclude=%zz&verbose", "/readyz/server", "/readyz/%1b", "/metrics", "/debug/controllers?limit=-1",
		"/debug/informers", "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/%2e%2e", "//metrics", "/%6detrics", "*",
	} {
		for _, header := range []string{"", "Authorization: Bearer x\r\n", "Authorization: Basic \r\n", "X-Remote-User: root\r\n"} {
			f.Add([]byte("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + header + "\r\n"))
		}
	}
	f.Add([]byte("POST /livez HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc"))
	server, err := New(pipeless{}, Options{
		Config: &rest.Config{Host: "http://in-memory", Transport: answering{
			code: http.StatusCreated, kind: wire.JSON.MediaType(), body: []byte(`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1"}`),
		}},
		Log: slog.New(slog.DiscardHandler), Profiling: true,
	})
	if err != nil {
		f.Fatal(err)
	}
	plain, err := New(pipeless{}, Options{Plain: true})
	if err != nil {
		f.Fatal(err)
	}
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { WritePage(w, func(io.Writer) {}) })
	health := NewHealth(slog.New(slog.DiscardHandler))
	for _, s := range []*Server{server, plain} {
		for _, name := range []string{"healthz", "livez", "readyz"} {
			s.Health("/"+name, "", health.Handler(name, Check{Name: "server", Ask: func() error { return nil }}))
		}
		for _, path := range []string{"/metrics", "/debug/controllers", "/debug/informers"} {
			s.Page(path, "", page)
		}
	}
	reviews := server.access.reviews
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return // the server of net/http answers
		}
		w := httptest.NewRecorder()
		server.Handler().ServeHTTP(w, r)
		isHealth := strings.HasPrefix(r.URL.Path, "/livez") || strings.HasPrefix(r.URL.Path, "/healthz") || strings.HasPrefix(r.URL.Path, "/readyz")
		if w.Code == http.StatusOK && !isHealth {
			t.Errorf("%s answers a stranger: %.100s", r.URL, w.Body)
		}
		if len(reviews.unknown.all) > rememberMost || len(reviews.people.all) > 0 {
			t.Errorf("%d answers about strangers, and %d about users that do not exist", len(reviews.unknown.all), len(reviews.people.all))
		}
		w = httptest.NewRecorder()
		plain.Handler().ServeHTTP(w, r)
		if w.Code != http.StatusMisdirectedRequest && !IsLocal(r.Host) {
			t.Errorf("host %q is answered: %d", r.Host, w.Code)
		}
	})
}

// pipeless is a listener on a loopback address to which nobody connects.
type pipeless struct{ net.Listener }

func (pipeless) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 10257} }

// FuzzReviewAnswer holds that only a review that says so lets somebody in.
func FuzzReviewAnswer(f *testing.F) {
	f.Add(201, true, []byte(`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":true,"user":{"username":"jane"}}}`))
	f.Add(201, true, []byte(`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`))
	f.Add(201, true, []byte(`{"status":{"authenticated":"yes","allowed":1}}`))
	f.Add(403, true, []byte(`{"kind":"Status","code":403}`))
	f.Add(201, false, []byte("k8s\x00\n\x1a\n\x17authentication.k8s.io/v1"))
	f.Fuzz(func(t *testing.T, code int, text bool, body []byte) {
		kind := wire.Protobuf.MediaType()
		if text {
			kind = wire.JSON.MediaType()
		}
		c, err := client.New(&rest.Config{Host: "http://in-memory", Transport: answering{code, kind, body}})
		if err != nil {
			t.Fatal(err)
		}
		a := &access{tokens: c, rights: c, reviews: newReviews(), objects: newReviews(), log: slog.New(slog.DiscardHandler)}
		got := a.ask(context.Background(), nil, "token", "/metrics")
		switch got.code {
		case http.StatusOK:
			if code < 200 || code > 299 || text && !bytes.Contains(bytes.ToLower(body), []byte("authenticated")) {
				t.Errorf("%d %q lets a stranger in", code, body)
			}
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusInternalServerError:
		default:
			t.Errorf("%d %q leads to %d", code, body, got.code)
		}
		if len(got.user) > longestName || !utf8.ValidString(got.user) {
			t.Errorf("the user is %q", got.user)
		}
	})
}

// FuzzCertificate holds that nothing that a certificate says makes somebody of its holder
// unless an authority signed it.
func FuzzCertificate(f *testing.F) {
	pair, err := selfMade(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(pair.Certificate[0], []byte("no certificate"))
	f.Fuzz(func(t *testing.T, raw, bundled []byte) {
		b := &bundle{read: func() ([]byte, error) { return bundled, nil }, log: slog.New(slog.DiscardHandler)}
		pool := b.roots()
		leaf, err := x509.ParseCertificate(raw)
		if err != nil {
			return
		}
		_, _ = uidOf(leaf)
		who, err := (&certificates{clients: b}).byCertificate([]*x509.Certificate{leaf, leaf})
		if pool == nil && (who != nil || err == nil) {
			t.Errorf("%+v without an authority", who)
		}
	})
}

// FuzzPublished holds that lists of names may be any text.
func FuzzPublished(f *testing.F) {
	for _, text := range []string{`["X-Remote-User"]`, `[null]`, `{"Pod":"12"}`, `nil`, "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		var names []string
		if json.Unmarshal([]byte(text), &names) == nil {
			_ = first(http.Header{"X-Remote-User": {"jane"}}, names)
		}
	})
}

// FuzzPrintable holds that what is printed is text, and that text stays as it is.
func FuzzPrintable(f *testing.F) {
	for _, text := range []string{"plain\nlines", "\x1b[31m", "\u202e\u0085\xff\x00", "日本語 ✓", "\ufffd"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Printable(text)
		clean := true
		for _, r := range text {
			clean = clean && (r == '\n' || unicode.IsPrint(r))
		}
		if clean && utf8.ValidString(text) && got != text {
			t.Errorf("%q became %q", text, got)
		}
		for _, r := range got {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%q has %q", got, r)
			}
		}
		if Printable(got) != got {
			t.Errorf("%q changes again", got)
		}
	})
}
