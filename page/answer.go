// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"cmp"
	"net/http"
)

// answer writes a page to a user. The frame of the page can go out before its content is made: the browser loads the style and
// shows where the user is, and the content follows on the same connection.
type answer struct {
	p     *Page
	w     http.ResponseWriter
	r     *http.Request
	view  view
	begun bool // the frame is sent, and the code of the answer with it
}

// begin sends the frame.
func (a *answer) begin(title string) {
	l := a.p.frame(a.r, a.view, title, nil)
	l.Early = true
	b, err := a.render(a.view, "frame", l)
	if err != nil {
		return // finish meets the same error
	}
	a.begun = true
	a.send(http.StatusOK, b)
	_ = http.NewResponseController(a.w).Flush() // a server that cannot sends it with the rest
}

// finish sends the content, and the frame if it is not sent yet. If err is not nil, a problem is the content.
func (a *answer) finish(title string, data any, err error) {
	v, code := a.view, http.StatusOK
	if err != nil {
		code = codeOf(err)
		v, title, data = view{name: "problem"}, cmp.Or(title, "Not shown"), plain(err.Error())
	}
	l := a.p.frame(a.r, v, title, data)
	if code < http.StatusInternalServerError && err != nil {
		l.Live = "" // it stays as it is
	}
	part := "layout.html"
	if a.begun {
		part = "rest"
	}
	b, err := a.render(v, part, l)
	if err != nil {
		const text = "the view cannot be written; the log of the process says why"
		if a.begun {
			_, _ = a.w.Write([]byte("<main><p>" + text + "</p></main></body></html>\n"))
			return
		}
		http.Error(a.w, text, http.StatusInternalServerError)
		return
	}
	a.send(code, b)
}

// render executes a template of a view.
func (a *answer) render(v view, part string, l layout) ([]byte, error) {
	var b bytes.Buffer
	if err := a.p.assets.views[v.name].ExecuteTemplate(&b, part, l); err != nil {
		a.p.options.Log.Error("a view cannot be written", "view", v.name, "error", err)
		return nil, err
	}
	return b.Bytes(), nil
}

// send writes bytes, after the header if they are the first.
func (a *answer) send(code int, b []byte) {
	if h := a.w.Header(); h.Get("Content-Type") == "" {
		h.Set("Content-Type", "text/html; charset=utf-8")
		a.w.WriteHeader(code)
	}
	_, _ = a.w.Write(b) // the client may have gone
}
