// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/manager/serving"
)

// Private serves pages on this machine to one browser of one user. Other users of the machine can reach the port too, so
// the browser needs a secret: [Private.Address] has it, works once, and gives the browser a cookie. Requests that name
// another host are refused, so that a page of the Internet whose name leads to this machine gets nothing.
type Private struct {
	handler  http.Handler
	listener net.Listener
	once     string      // the secret of the address
	used     atomic.Bool // it has been used
	session  string      // the secret of the cookie
	cookie   string      // its name, which has the port: browsers send cookies to all ports of a host
}

// loginPath is where the address with the secret leads.
const loginPath = "/login/"

// NewPrivate returns a server of a handler on a listener, which must be on a loopback address. It serves the handler at the
// root.
func NewPrivate(l net.Listener, h http.Handler) (*Private, error) {
	tcp, ok := l.Addr().(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return nil, fmt.Errorf("serving the page on %s: want a loopback address such as 127.0.0.1", l.Addr())
	}
	return &Private{handler: h, listener: l, once: rand.Text(), session: rand.Text(), cookie: fmt.Sprintf("setpoint-%d", tcp.Port)}, nil
}

// Address returns the address for the browser of the user. It has a secret, which works once, and must not be logged.
func (p *Private) Address() string {
	return "http://" + p.listener.Addr().String() + loginPath + p.once
}

// Times of the server.
const (
	headerTime = 10 * time.Second
	idleTime   = 90 * time.Second
	endTime    = time.Second
)

// Run serves until ctx ends. It closes the listener.
func (p *Private) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{Handler: p, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime,
		BaseContext: func(net.Listener) context.Context { return ctx }} // the end of ctx ends the live updates
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(p.listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving the page: %w", err)
	case <-ctx.Done():
	}
	ending, stop := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer stop()
	if server.Shutdown(ending) != nil {
		_ = server.Close() // a request is still in progress
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the page: %w", err)
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (p *Private) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if secret, login := strings.CutPrefix(r.URL.Path, loginPath); login {
		p.login(w, r, secret)
		return
	}
	serving.LocalOnly(http.HandlerFunc(p.serve)).ServeHTTP(w, r)
}

// serve serves the handler to the browser with the cookie.
func (p *Private) serve(w http.ResponseWriter, r *http.Request) {
	if !p.known(r) {
		http.Error(w, "this page belongs to one browser: open the address that the command has printed", http.StatusUnauthorized)
		return
	}
	p.handler.ServeHTTP(w, r)
}

// known reports whether a request has the cookie.
func (p *Private) known(r *http.Request) bool {
	c, err := r.Cookie(p.cookie)
	return err == nil && same(c.Value, p.session)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// login gives a browser the cookie for the secret of the address, and leads it to the page. A browser does not send a
// strict cookie with a redirect that another site began, so the answer is a page that goes on by itself.
func (p *Private) login(w http.ResponseWriter, r *http.Request, secret string) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer") // the address is a secret
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", policy)
	switch {
	case !serving.IsLocal(r.Host):
		http.Error(w, "this port answers to localhost and to addresses such as 127.0.0.1 alone", http.StatusMisdirectedRequest)
		return
	case r.Method != http.MethodGet:
		http.Error(w, "want GET", http.StatusMethodNotAllowed)
		return
	case p.known(r):
	case !same(secret, p.once) || p.used.Swap(true):
		http.Error(w, "this address works once, and has been used or is wrong; start the command again for another one", http.StatusForbidden)
		return
	default:
		http.SetCookie(w, &http.Cookie{Name: p.cookie, Value: p.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}) //nolint:gosec // there is no TLS on the loopback address
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(`<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/"><title>Setpoint</title><p><a href="/">Setpoint</a>`)) // the browser may have gone
}
