// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// liveStep is the time between two updates of a view.
	liveStep = time.Second
	// liveMost is how long one stream lasts. The script then begins another one, and so the rights of the user are
	// looked up again, however they were shown.
	liveMost = 5 * time.Minute
	// liveWrite bounds the time of one write: a client that does not read must not keep a stream.
	liveWrite = 10 * time.Second
	// liveAlive is how often something is sent at least, so that a script sees that the server is there.
	liveAlive = 10 * time.Second
)

// live sends a view as server-sent events, whenever it has changed. An event "view" has the HTML of the main part of the
// page, "problem" a text, and "alive" nothing. The parameter view is the address of the view below the base.
func (p *Page) live(w http.ResponseWriter, r *http.Request) {
	of, v, err := p.viewAt(r)
	if err != nil {
		http.Error(w, plain(err.Error()), codeOf(err))
		return
	}
	stream := http.NewResponseController(w)
	_ = stream.SetReadDeadline(time.Time{}) // that of a request would end the stream
	w.Header().Set("Content-Type", "text/event-stream")
	end := time.NewTimer(liveMost)
	defer end.Stop()
	step := time.NewTicker(liveStep)
	defer step.Stop()
	who := p.options.Viewer(r)
	var last [sha256.Size]byte
	var sent time.Time
	for {
		event := p.event(of, v, who)
		sum := sha256.Sum256(event)
		if sum == last {
			event = sse("alive", "") // nothing has changed
		}
		if sum != last || time.Since(sent) >= liveAlive {
			_ = stream.SetWriteDeadline(time.Now().Add(liveWrite)) // where it is not supported, the server's own counts
			if _, err := w.Write(event); err != nil {              //nolint:gosec // html/template has escaped it
				return
			}
			if err := stream.Flush(); err != nil {
				return
			}
			last, sent = sum, time.Now()
		}
		select {
		case <-step.C:
		case <-end.C:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// viewAt returns the view that a request for live updates names, and the request for it.
func (p *Page) viewAt(r *http.Request) (*http.Request, view, error) {
	address := r.URL.Query().Get("view")
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "" || at.Host != "" || !strings.HasPrefix(at.Path, "/") {
		return nil, view{}, problemf(http.StatusBadRequest, "view=%q: want the address of a view, such as /o/apps/deployments/shop/web", address)
	}
	request := r.Clone(r.Context())
	request.URL = &url.URL{Path: at.Path, RawPath: at.RawPath, RawQuery: at.RawQuery}
	handler, pattern := p.views.Handler(request)
	found, known := handler.(viewHandler)
	if !known {
		return nil, view{}, problemf(http.StatusNotFound, "there is no view %q", at.Path)
	}
	setPathValues(request, pattern)
	return request, found.view, nil
}

// setPathValues does what http.ServeMux does for a handler that it calls: it sets the values of the wildcards of a pattern.
func setPathValues(r *http.Request, pattern string) {
	_, path, _ := strings.Cut(pattern, " ")
	names, values := strings.Split(path, "/"), strings.Split(r.URL.EscapedPath(), "/")
	for i, name := range names {
		if name, wild := strings.CutPrefix(name, "{"); wild && i < len(values) {
			if value, err := url.PathUnescape(values[i]); err == nil {
				r.SetPathValue(strings.TrimSuffix(name, "}"), value)
			}
		}
	}
}

// event returns the event of a view as it is now.
func (p *Page) event(r *http.Request, v view, who Viewer) []byte {
	// The deadline of the server for the request does not count: each update has its own.
	ctx, cancel := context.WithTimeout(r.Context(), memoTime)
	defer cancel()
	title, data, err := v.make(p, r.WithContext(ctx), who)
	if err != nil {
		return sse("problem", plain(err.Error()))
	}
	var b bytes.Buffer
	if err := p.assets.views[v.name].ExecuteTemplate(&b, "main", p.frame(r, v, title, data)); err != nil {
		p.options.Log.Error("a view cannot be written", "view", v.name, "error", err)
		return sse("problem", "the view cannot be written; the log of the process says why")
	}
	return sse("view", b.String())
}

// sse returns a server-sent event.
func sse(name, data string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\n", name)
	for line := range strings.SplitSeq(strings.ReplaceAll(data, "\r", ""), "\n") {
		fmt.Fprintf(&b, "data: %s\n", line)
	}
	b.WriteByte('\n')
	return b.Bytes()
}
