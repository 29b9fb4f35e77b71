// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/internal/discovery"
	"github.com/setpoint-io/setpoint/runs"
)

// searchView has the objects whose kind, name or namespace a text names.
type searchView struct {
	Query   string
	Hits    []hit
	More    int
	Hidden  []string // kinds that the viewer may not get
	Unknown []string
}

// hit is an object that was found.
type hit struct {
	Kind    string
	Name    string // with the namespace
	Link    string
	Changes string // the address of what happened in a namespace, if the object is one
	Gone    bool   // only the record has it
	rank    int
	object  runs.Object
}

// Bounds of a search.
const (
	longestQuery = 253 // bytes, as those of a name
	mostHits     = 60
	mostRecorded = 200 // runs that are read
	mostChecked  = 40  // recorded objects whose existence is looked up
	checksAtOnce = 8
)

// makeSearch makes the view of a search.
func (p *Page) makeSearch(r *http.Request, who Viewer) (title string, data any, err error) {
	text := strings.TrimSpace(r.URL.Query().Get("q"))
	if len(text) > longestQuery {
		return "", nil, problemf(http.StatusBadRequest, "q: want at most %d bytes", longestQuery)
	}
	v := searchView{Query: plain(text)}
	if text == "" {
		return "Search", v, nil
	}
	kinds, err := p.kinds.all(r.Context())
	if err != nil {
		return "", nil, problemf(http.StatusBadGateway, "the API server does not say which kinds it serves: %v", err)
	}
	type key struct{ search string }
	found, err := of(r.Context(), &p.memo, key{text}, func(ctx context.Context) (searched, error) {
		return p.search(ctx, kinds, text), nil
	})
	if err != nil {
		return "", nil, err
	}
	sight := newSight(r.Context(), p, who)
	for _, h := range found.hits {
		switch {
		case len(v.Hits) == mostHits:
			v.More++ // their rights are not looked up: a count names none of them
		case sight.sees(h.object):
			v.Hits = append(v.Hits, h)
		}
	}
	v.Hidden, v.Unknown = sight.hidden(), found.unknown
	return "Search for " + plain(text), v, nil
}

// searched is what a search found, for all viewers.
type searched struct {
	hits    []hit
	unknown []string
}

// search looks for a text: in all kinds, or in one if the text is KIND, KIND/ or KIND/NAME.
func (p *Page) search(ctx context.Context, kinds []client.Served, text string) searched {
	kind, name, slash := strings.Cut(text, "/")
	if s, _, named := discovery.Named(kinds, kind, func(s client.Served) bool { return s.Can("list") && s.Can("get") }); named {
		if !slash {
			name = ""
		}
		kinds = []client.Served{s}
	} else {
		name = text
	}
	found := p.gatherer().Find(ctx, kinds, name)
	all := searched{unknown: found.Unread}
	known := map[runs.Object]bool{}
	for _, o := range found.Objects {
		o.UID = ""
		known[o] = true
		all.hits = append(all.hits, p.hitOf(o, name))
	}
	all.addGone(ctx, p, kinds, name, known)
	slices.SortStableFunc(all.hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// hitOf returns an object as a hit. Its rank says how well the name fits.
func (p *Page) hitOf(o runs.Object, name string) hit {
	h := hit{Kind: o.Kind, Name: o.Ref().Key.String(), Link: linkOf(o, p.options.Base), object: o, rank: 3}
	switch {
	case o.Name == name:
		h.rank = 1
	case strings.HasPrefix(o.Name, name):
		h.rank = 2
	}
	if o.Kind == "Namespace" && o.Group == "" {
		h.rank--
		h.Changes = changesChoice{namespace: o.Name, since: usualSpan}.address(p.options.Base)
	}
	return h
}

// addGone adds objects that only the record has.
func (s *searched) addGone(ctx context.Context, p *Page, kinds []client.Served, name string, known map[runs.Object]bool) {
	if name == "" {
		return
	}
	found, err := p.source.Record().Newest(ctx, runs.Query{Contains: name, Limit: mostRecorded})
	if err != nil {
		s.unknown = append(s.unknown, "deleted objects: "+err.Error())
		return
	}
	var gone []hit
	for o := range recordedObjects(found, name) {
		if known[o] || len(gone) == mostChecked {
			continue
		}
		if slices.ContainsFunc(kinds, func(k client.Served) bool { return k.Group == o.Group && k.Kind == o.Kind }) {
			gone = append(gone, p.hitOf(o, name))
		}
	}
	var running sync.WaitGroup
	turns := make(chan struct{}, checksAtOnce)
	for i := range gone {
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			gone[i].Gone = !p.exists(ctx, gone[i].object)
		})
	}
	running.Wait()
	s.hits = append(s.hits, gone...)
}

// recordedObjects yields each object of a part of a name that recorded runs are about or wrote, once and without its UID.
func recordedObjects(found gather.Found, name string) func(yield func(runs.Object) bool) {
	return func(yield func(runs.Object) bool) {
		seen := map[runs.Object]bool{}
		add := func(o runs.Object) bool {
			o.UID = ""
			if seen[o] || o.Kind == "" || !strings.Contains(o.Name, name) {
				return true
			}
			seen[o] = true
			return yield(o)
		}
		for i := range found.Runs {
			if !add(found.Runs[i].Object) {
				return
			}
			for _, w := range found.Runs[i].Writes {
				if !add(w.Object) {
					return
				}
			}
		}
	}
}

// exists reports whether the API server has an object. If that is not known, it is taken to exist.
func (p *Page) exists(ctx context.Context, o runs.Object) bool {
	resource, served, err := p.kinds.named(ctx, o.Group, o.Kind)
	if err != nil || !served {
		return err != nil
	}
	_, err = client.ForResource[*unstructured.Unstructured](p.source.Client(), resource).Get(ctx, o.Ref().Key)
	return !apierrors.IsNotFound(err)
}
