// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/explain"
)

// changesView is what happened in a namespace.
type changesView struct {
	Namespace string
	Since     time.Duration
	AsOf      time.Time
	Spans     []spanLink
	All       string // the address of the view of all namespaces; empty: this is it
	Groups    []groupView
	More      int
	Hidden    []string // kinds that the viewer may not get
	Unknown   []string
}

// spanLink leads to the same view of another time.
type spanLink struct {
	Text string
	Link string
	Here bool
}

// groupView is a group of changes.
type groupView struct {
	explain.Group
	Mark  mark
	Link  string
	Lines []changeLine
	Left  int // changes that are not listed
}

// changeLine is one change, whose text has the name of its object in the middle.
type changeLine struct {
	explain.Change
	Before, Name, After string
	Link                string
	RunLink             string
}

// Spans of time that the view offers, and the longest that an address may choose.
const (
	usualSpan   = 5 * time.Minute
	longestSpan = 24 * time.Hour
)

func spans() []time.Duration { return []time.Duration{usualSpan, 15 * time.Minute, time.Hour} }

// changesChoice is what the address of the view chooses.
type changesChoice struct {
	namespace string
	since     time.Duration
}

func parseChanges(q url.Values) (changesChoice, error) {
	c := changesChoice{namespace: q.Get("namespace"), since: usualSpan}
	if c.namespace != "" {
		if err := checkPart(c.namespace); err != nil {
			return c, problemf(http.StatusBadRequest, "namespace=%q: %v", c.namespace, err)
		}
	}
	if text := q.Get("since"); text != "" {
		var err error
		if c.since, err = time.ParseDuration(text); err != nil || c.since < time.Second || c.since > longestSpan {
			return c, problemf(http.StatusBadRequest, "since=%q: want a time such as 5m, at least 1s and at most %s", text, longestSpan)
		}
	}
	return c, nil
}

// address returns the address of a choice, below the base.
func (c changesChoice) address(base string) string {
	q := url.Values{}
	if c.namespace != "" {
		q.Set("namespace", c.namespace)
	}
	if c.since != usualSpan {
		q.Set("since", spanText(c.since))
	}
	if len(q) == 0 {
		return base + "/changes"
	}
	return base + "/changes?" + q.Encode()
}

// spanText writes a time as an address has it: "5m", not "5m0s".
func spanText(d time.Duration) string {
	text := d.String()
	if d%time.Minute == 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	if d%time.Hour == 0 {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// spanName writes a time for people: "5 min", "1 h".
func spanName(d time.Duration) string {
	if d%time.Hour == 0 {
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return shortTime(d)
}

// titleOfChanges is the title of the view of what happened.
const titleOfChanges = "What happened"

// earlyChanges refuses an address that chooses nothing. The lists of all kinds take the API server up to half a second in a
// cluster of 20,000 Pods under load, which is long for a window that stays empty.
func earlyChanges(r *http.Request) (title string, err error) {
	_, err = parseChanges(r.URL.Query())
	return titleOfChanges, err
}

// makeChanges makes the view of what happened.
func (p *Page) makeChanges(r *http.Request, who Viewer) (title string, data any, err error) {
	chosen, err := parseChanges(r.URL.Query())
	if err != nil {
		return "", nil, err
	}
	facts, err := p.changed(r.Context(), chosen)
	if err != nil {
		return "", nil, err
	}
	sight := newSight(r.Context(), p, who)
	facts = sight.ofNamespace(facts)
	v := p.viewChanges(explain.WhatHappened(facts), chosen)
	v.Hidden = sight.hidden()
	return titleOfChanges, v, nil
}

// changed returns the facts about a namespace, which all viewers share: their rights are looked up later.
func (p *Page) changed(ctx context.Context, chosen changesChoice) (explain.NamespaceFacts, error) {
	kinds, err := p.kinds.all(ctx)
	if err != nil {
		return explain.NamespaceFacts{}, problemf(http.StatusBadGateway, "the API server does not say which kinds it serves: %v", err)
	}
	return of(ctx, &p.memo, chosen, func(ctx context.Context) (explain.NamespaceFacts, error) {
		return p.gatherer().Changed(ctx, kinds, chosen.namespace, time.Now().Add(-chosen.since)), nil
	})
}

// viewChanges makes the view of an answer.
func (p *Page) viewChanges(h explain.Happened, chosen changesChoice) changesView {
	v := changesView{Namespace: chosen.namespace, Since: chosen.since, AsOf: h.AsOf, More: h.MoreGroups, Unknown: h.Unknown}
	for _, span := range spans() {
		other := changesChoice{chosen.namespace, span}
		v.Spans = append(v.Spans, spanLink{Text: spanName(span), Link: other.address(p.options.Base), Here: span == chosen.since})
	}
	if chosen.namespace != "" {
		v.All = changesChoice{since: chosen.since}.address(p.options.Base)
	}
	for i := range h.Groups {
		v.Groups = append(v.Groups, p.viewGroup(&h.Groups[i]))
	}
	return v
}

func (p *Page) viewGroup(g *explain.Group) groupView {
	v := groupView{Group: *g, Mark: well(), Link: linkOf(g.Object, p.options.Base), Left: max(g.Total-len(g.Changes), 0)}
	if g.Trouble {
		v.Mark = trouble()
	}
	for _, c := range g.Changes {
		line := changeLine{Change: c, Before: c.Text, Link: linkOf(c.Object, p.options.Base)}
		if before, after, found := strings.Cut(c.Text, c.Object.String()); found {
			line.Before, line.Name, line.After = before, c.Object.String(), after
		}
		if c.Run != 0 && line.Link != "" {
			line.RunLink = line.Link + choice{run: idOf(c.Run, c.At)}.query()
		}
		v.Lines = append(v.Lines, line)
		v.Left -= c.Count - 1
	}
	v.Left = max(v.Left, 0)
	return v
}
