// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/explain"
)

//go:embed templates
var templates embed.FS

//go:embed assets
var files embed.FS

// assets are the files that the views refer to.
type assets struct {
	files map[string]asset
	views map[string]*template.Template // by the names of views
}

// asset is a file with its tag, which changes with the content.
type asset struct {
	content []byte
	tag     string
}

// readAssets reads the embedded files. They are part of the program, so a mistake in them is a panic.
func readAssets() assets {
	a := assets{files: map[string]asset{}, views: map[string]*template.Template{}}
	entries, err := fs.ReadDir(files, "assets")
	for _, entry := range entries {
		content, err := files.ReadFile("assets/" + entry.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(content)
		a.files[entry.Name()] = asset{content, hex.EncodeToString(sum[:8])}
	}
	if err != nil {
		panic(err)
	}
	names := []string{"problem"}
	for _, v := range views() {
		names = append(names, v.name)
	}
	layout := template.Must(template.New("layout.html").Funcs(functions()).ParseFS(templates, "templates/layout.html", "templates/parts.html"))
	for _, name := range names {
		a.views[name] = template.Must(template.Must(layout.Clone()).ParseFS(templates, "templates/"+name+".html"))
	}
	return a
}

// functions are those of the templates.
func functions() template.FuncMap {
	return template.FuncMap{
		"plain":   plain,
		"pieces":  pieces,
		"counted": counted,
		"clock":   func(t time.Time) string { return t.Local().Format(time.TimeOnly) },
		"exact":   func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"ago":     func(now, then time.Time) string { return shortTime(now.Sub(then)) },
		"short":   shortTime,
		"next":    func(attempt int) int { return attempt + 1 }, // users count from 1
		"again":   again,
	}
}

// nextRun is when the key of a loop runs again, and the words for it.
type nextRun struct {
	What string
	At   time.Time
}

// again says when the key of a loop runs again; nil if that is not known.
func again(l explain.Loop, now time.Time) *nextRun {
	at, what := l.Next(now)
	if at == nil {
		return nil
	}
	return &nextRun{what, *at}
}

// layout is what the frame of a page shows.
type layout struct {
	Title   string
	Base    string
	View    string
	Live    string            // the address of the live updates; empty: there are none
	Tags    map[string]string // of the assets
	Query   string            // in the search box
	Process string            // which manager this is
	Early   bool              // the content is sent later than the frame
	Main    any
}

// frame returns the frame of a view.
func (p *Page) frame(r *http.Request, v view, title string, main any) layout {
	l := layout{Title: title, Base: p.options.Base, View: v.name, Main: main, Tags: map[string]string{}, Query: plain(r.URL.Query().Get("q"))}
	for name, a := range p.assets.files {
		l.Tags[name] = a.tag
	}
	here := url.URL{Path: strings.TrimPrefix(r.URL.Path, p.options.Base), RawQuery: r.URL.RawQuery}
	if !v.still {
		l.Live = p.options.Base + "/live?" + url.Values{"view": {here.String()}}.Encode()
	}
	type key struct{ process bool }
	l.Process, _ = of(r.Context(), &p.memo, key{true}, func(ctx context.Context) (string, error) {
		states, err := p.source.Overviews(ctx)
		return processOf(&states), err
	})
	return l
}

// processOf names the managers in the header, each once.
func processOf(states *States) string {
	var texts []string
	for _, o := range states.Known {
		text := o.Instance
		if o.State != "working" && o.State != "" {
			text += " · " + o.State
		}
		if o.Holder != "" {
			text += " · leader " + o.Holder
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return plain(strings.Join(texts, ", "))
}

// serveAsset answers with a file. Its address has its tag, so a browser may keep it.
func (p *Page) serveAsset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	a, known := p.assets.files[name]
	if !known {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("ETag", `"`+a.tag+`"`)
	h.Set("Cache-Control", "private, no-cache")
	if r.URL.Query().Get("v") == a.tag {
		h.Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	if r.Header.Get("If-None-Match") == `"`+a.tag+`"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}[path.Ext(name)])
	_, _ = w.Write(a.content) // the client may have gone
}
