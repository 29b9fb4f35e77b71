// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/page"
)

// visit is a request to a private page.
type visit struct {
	path, host, site string
	cookie           *http.Cookie
}

// reply is the answer to a visit.
type reply struct {
	StatusCode int
	Header     http.Header
	Cookies    []*http.Cookie
}

func (v visit) send(t *testing.T, base string) (reply, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+v.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = v.host
	if v.site != "" {
		r.Header.Set("Sec-Fetch-Site", v.site)
	}
	if v.cookie != nil {
		r.AddCookie(v.cookie)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{answer.StatusCode, answer.Header, answer.Cookies()}, string(body)
}

// The address works once, for a request that names this machine. The browser then has a cookie, and no other client gets in.
func TestAPrivatePageBelongsToOneBrowser(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p, err := page.NewPrivate(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the page") }))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	address, err := url.Parse(p.Address())
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + address.Host
	refused := func(what string, v visit, code int) {
		t.Helper()
		if answer, body := v.send(t, base); answer.StatusCode != code || strings.Contains(body, "the page") || len(answer.Cookies) > 0 {
			t.Errorf("%s is answered with %d %q, want %d", what, answer.StatusCode, body, code)
		}
	}
	refused("a request without the cookie", visit{path: "/"}, http.StatusUnauthorized)
	refused("a wrong secret", visit{path: "/login/ABC"}, http.StatusForbidden)
	refused("the secret by a foreign name", visit{path: address.Path, host: "evil.example.com"}, http.StatusMisdirectedRequest)

	answer, body := visit{path: address.Path, site: "cross-site"}.send(t, base)
	if len(answer.Cookies) != 1 || !strings.Contains(body, "url=/") || strings.Contains(body, address.Path) {
		t.Fatalf("the address is answered with %d %q and the cookies %v", answer.StatusCode, body, answer.Cookies)
	}
	cookie := answer.Cookies[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || answer.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("the cookie is %v, want HttpOnly and SameSite=Strict", cookie)
	}
	if _, body := (visit{path: "/", cookie: cookie}).send(t, base); body != "the page" {
		t.Errorf("with the cookie the answer is %q", body)
	}
	if _, body := (visit{path: address.Path, cookie: cookie}).send(t, base); !strings.Contains(body, "url=/") {
		t.Errorf("the browser with the cookie opens the address again: %q", body)
	}
	refused("the address for a second browser", visit{path: address.Path}, http.StatusForbidden)
	refused("the cookie by a foreign name", visit{path: "/", cookie: cookie, host: "evil.example.com"}, http.StatusMisdirectedRequest)
	refused("the cookie with a request of another site", visit{path: "/", cookie: cookie, site: "cross-site"}, http.StatusForbidden)
	refused("another cookie", visit{path: "/", cookie: &http.Cookie{Name: cookie.Name, Value: "x"}}, http.StatusUnauthorized) //nolint:gosec // a cookie of a request has a name and a value
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAPrivatePageIsNotServedToANetwork(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := page.NewPrivate(l, http.NotFoundHandler()); err == nil || !strings.Contains(err.Error(), "want a loopback address") {
		t.Errorf("on an address of the network: %v", err)
	}
}
