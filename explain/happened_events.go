// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// addEvents adds Events to the groups of their objects. Events of recorded controllers that do not warn say what the
// record says already.
func (h *history) addEvents() {
	for i := range h.facts.Events {
		e := &h.facts.Events[i]
		warns := e.Type == "Warning"
		if e.Last.Before(h.facts.Since) || !h.shows(e.About) || h.actors[e.Source] && !warns {
			continue
		}
		h.put(h.groupOfEvent(e), Change{
			At: e.Last, Actor: cmp.Or(e.Source, unnamed), Object: e.About, Count: max(e.Count, 1), Trouble: warns,
			Text: strings.TrimSpace(e.About.String() + ": " + e.Reason + ": " + e.Note),
		})
	}
}

// groupOfEvent returns the newest group that had begun when an Event was seen, of those that concern its object.
func (h *history) groupOfEvent(e *NamespaceEvent) *Group {
	if g := h.created[e.About.UID]; g != nil {
		return g
	}
	for _, g := range slices.Backward(h.touched[nameless(e.About)]) {
		if !g.Began.After(e.Last.Add(time.Second)) {
			return g
		}
	}
	g := &Group{
		ID: fmt.Sprintf("event-%s-%s", cmp.Or(string(e.About.UID), e.About.String()), e.Reason), Code: BeganEvent, Object: e.About,
		Actor: cmp.Or(e.Source, unnamed), Title: e.About.Kind + " " + shortName(e.About, h.facts.Namespace) + ": " + e.Reason,
	}
	h.groups = append(h.groups, g)
	return g
}

// alikeTime is how far apart the ends of groups are that are folded into one.
const alikeTime = time.Minute

// foldAlike joins groups that follow each other: reports of one program about objects of one kind, as a node that goes away
// changes the status of a hundred Pods, and what a controller does again and again for one object.
func foldAlike(all []*Group) (folded []*Group) {
	type sort struct{ code, kind, namespace, name, actor string }
	open := map[sort]*Group{}
	others := map[*Group]map[string]bool{} // names of objects
	slices.SortStableFunc(all, func(a, b *Group) int { return a.Began.Compare(b.Began) })
	for _, g := range all {
		k := sort{code: g.Code, kind: g.Object.Kind, namespace: g.Object.Namespace, actor: g.Actor}
		if g.Code == BeganItself {
			k.name = g.Title // it has the object, or the key if the keys of the loop are no objects
		}
		before := open[k]
		if g.Code != BeganStatus && g.Code != BeganItself || before == nil || g.Began.Sub(before.newest()) > alikeTime {
			folded, open[k] = append(folded, g), g
			continue
		}
		if others[before] == nil {
			others[before] = map[string]bool{before.Object.Name: true}
		}
		others[before][g.Object.Name] = true
		before.Changes = append(before.Changes, g.Changes...)
	}
	for g, names := range others {
		if len(names) > 1 {
			g.Title += fmt.Sprintf(" and %d more", len(names)-1)
		}
	}
	return folded
}

// newest returns when the newest change of a group was made.
func (g *Group) newest() (at time.Time) {
	for i := range g.Changes {
		if g.Changes[i].At.After(at) {
			at = g.Changes[i].At
		}
	}
	return at
}
