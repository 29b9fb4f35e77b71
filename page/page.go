// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

// Page is the handler of the pages. Make it with [New] or [Add]. It is safe for concurrent use.
type Page struct {
	source  Source
	options Options
	history history
	looked  atomic.Int64 // when a user last looked, in seconds since 1970
	kinds   kinds
	memo    memo
	views   *http.ServeMux // of the paths of views
	mux     *http.ServeMux // of everything
	assets  assets
}

// Options change a page. The zero value is a page at the root of its server, for a user who may see everything.
type Options struct {
	// Base is the path below which the page is served, such as "/page", without a slash at its end.
	Base string
	// Viewer returns the user of a request. nil is [Everything].
	Viewer func(*http.Request) Viewer
	// Log is the logger. nil is slog.Default.
	Log *slog.Logger
}

// New returns the handler of the pages of a source. [Page.Run] takes the samples for its charts.
func New(s Source, o Options) *Page {
	if o.Viewer == nil {
		o.Viewer = Everything
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	p := &Page{source: s, options: o, views: http.NewServeMux(), mux: http.NewServeMux(), assets: readAssets()}
	p.kinds.client = s.Client
	for pattern, v := range views() {
		handler := p.serveView(v)
		p.views.Handle(pattern, viewHandler{Handler: handler, view: v})
		method, path, _ := strings.Cut(pattern, " ")
		p.mux.Handle(method+" "+o.Base+path, handler)
	}
	p.mux.HandleFunc("GET "+o.Base+"/assets/{name}", p.serveAsset)
	p.mux.HandleFunc("GET "+o.Base+"/live", p.live)
	return p
}

// Base is where [Add] serves the pages of a manager.
const Base = "/page"

// Add has a manager serve the pages below /page/, for users with the right to get the path /page. It must be called before the
// manager runs.
func Add(m *manager.Manager) error {
	p := New(Of(m), Options{Base: Base, Viewer: served, Log: m.Logger()})
	if err := m.HandleBelow(Base, "why objects are as they are, and what the loops do, in a browser", p); err != nil {
		return err
	}
	return m.Add(p)
}

// Name implements manager.Runnable.
func (p *Page) Name() string { return "page" }

// Run takes the samples for the charts until ctx ends. It implements manager.Runnable. Without it the charts are empty,
// and rates are those since the last look. Managers of other processes are asked while a user looks.
func (p *Page) Run(ctx context.Context) error {
	p.history.run(ctx, func() (States, error) {
		if time.Since(time.Unix(p.looked.Load(), 0)) > lookLasts {
			return p.source.Own(), nil
		}
		return p.source.Overviews(ctx)
	})
	return nil
}

// lookLasts is how long after the last request of a user the charts go on.
const lookLasts = time.Minute

// looking notes that a user looks.
func (p *Page) looking() { p.looked.Store(time.Now().Unix()) }

// policy lets a browser load what this server serves, and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	p.mux.ServeHTTP(w, r)
}

// view is one of the pages. Its template is the file templates/NAME.html, which defines "main".
type view struct {
	name string
	// make returns what the template shows, and the title of the page. An error of type [*problem] has its own code.
	make func(p *Page, r *http.Request, who Viewer) (title string, data any, err error)
	// early returns the title of a page whose frame is sent before make is called, because make can take half a second.
	// An error is answered instead of the frame. Without early, frame and content are sent together.
	early func(r *http.Request) (title string, err error)
	// still is set for a view that does not change while a user looks at it.
	still bool
}

// views are all views, by their patterns.
func views() map[string]view {
	return map[string]view{
		"GET /{$}": {name: "loops", make: (*Page).makeLoops},
		"GET /o/{group}/{kind}/{namespace}/{name}": {name: "object", make: (*Page).makeObject},
		"GET /changes": {name: "changes", make: (*Page).makeChanges, early: earlyChanges},
		"GET /search":  {name: "search", make: (*Page).makeSearch, still: true},
	}
}

// problem is an error for the user of a view.
type problem struct {
	code int
	text string
}

func (p *problem) Error() string { return p.text }

func problemf(code int, format string, args ...any) error {
	return &problem{code, fmt.Sprintf(format, args...)}
}

// viewHandler is a handler of which the view is known.
type viewHandler struct {
	http.Handler
	view view
}

// serveView answers with a view as a whole page.
func (p *Page) serveView(v view) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := answer{p: p, w: w, r: r, view: v}
		if v.early != nil {
			title, err := v.early(r)
			if err != nil {
				a.finish(title, nil, err)
				return
			}
			a.begin(title)
		}
		a.finish(v.make(p, r, p.options.Viewer(r)))
	})
}

// makeLoops makes the view of the loops.
func (p *Page) makeLoops(r *http.Request, _ Viewer) (title string, data any, err error) {
	type key struct{ loops bool }
	v, err := of(r.Context(), &p.memo, key{true}, func(ctx context.Context) (loopsView, error) {
		p.looking()
		states, err := p.source.Overviews(ctx)
		if err != nil {
			return loopsView{AsOf: time.Now(), Unknown: plain(err.Error())}, nil
		}
		v := viewLoops(&states, &p.history)
		p.history.add(&states) // without Run, the requests of users fill the charts
		return v, nil
	})
	return "Loops", v, err
}

// gatherer returns what collects facts for a viewer.
func (p *Page) gatherer() gather.Gatherer {
	p.looking()
	return gather.Gatherer{Client: p.source.Client(), Record: p.source.Record()}
}

// mayGet returns an error unless a viewer may get an object.
func mayGet(ctx context.Context, who Viewer, r object.Resource, key object.Key) error {
	may, err := who.MayGet(ctx, r, key)
	switch {
	case err != nil:
		return problemf(http.StatusInternalServerError, "whether you may see %s %s is not known: %v", r.Kind, key, err)
	case !may:
		return problemf(http.StatusForbidden, "you may not get %s %s; a Role that allows it lets you see it here", r.Kind, key)
	}
	return nil
}

// codeOf returns the HTTP code of an error.
func codeOf(err error) int {
	if known, ok := errors.AsType[*problem](err); ok {
		return known.code
	}
	return http.StatusInternalServerError
}
