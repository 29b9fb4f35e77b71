// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// history joins changes into groups. Runs are joined by their writes: a write of one run and the cause of another are
// the same change if kind, object and resourceVersion are equal.
type history struct {
	facts *NamespaceFacts
	runs  []runs.Run // the oldest first

	wrote   map[version]int       // the run that made a version, by its index
	deleted map[runs.Object][]int // the runs that deleted an object; objects have no UID here
	writes  map[runs.Object][]writeAt
	of      []*Group             // of each run
	before  map[loopKey]int      // the last run so far of a controller and key
	created map[types.UID]*Group // of the objects that recorded runs created
	known   map[types.UID]*Known // the objects that the server has
	edits   map[string]*Group    // of changes that no recorded run made
	touched map[runs.Object][]*Group
	actors  map[string]bool // recorded controllers
	groups  []*Group
}

// version identifies a state of an object. Two kinds do not share resourceVersions in practice, but they may.
type version struct{ group, kind, namespace, name, version string }

// writeAt is a write of a run that began at a time.
type writeAt struct {
	*runs.Write
	at time.Time
}

type loopKey struct{ controller, key string }

func newHistory(f *NamespaceFacts) *history {
	h := &history{
		facts: f, runs: slices.Clone(f.Runs), wrote: map[version]int{}, deleted: map[runs.Object][]int{}, writes: map[runs.Object][]writeAt{}, before: map[loopKey]int{},
		created: map[types.UID]*Group{}, known: map[types.UID]*Known{}, edits: map[string]*Group{}, touched: map[runs.Object][]*Group{},
		actors: map[string]bool{},
	}
	slices.SortFunc(h.runs, func(a, b runs.Run) int { return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Number, b.Number)) })
	for i := range h.runs {
		h.actors[h.runs[i].Controller] = true
		for k := range h.runs[i].Writes {
			h.index(i, &h.runs[i].Writes[k])
		}
	}
	for i := range f.Objects {
		h.known[f.Objects[i].Object.UID] = &f.Objects[i]
	}
	return h
}

// index makes a write of a run findable.
func (h *history) index(run int, w *runs.Write) {
	o := nameless(w.Object)
	switch {
	case w.Refused():
	case w.Verb == "delete":
		h.deleted[o] = append(h.deleted[o], run)
	default:
		h.writes[o] = append(h.writes[o], writeAt{w, h.runs[run].Began})
		if w.Version != "" {
			h.wrote[versionOf(w.Object, w.Version)] = run
		}
	}
}

func versionOf(o runs.Object, v string) version {
	return version{o.Group, o.Kind, o.Namespace, o.Name, v}
}

// nameless returns an object without its UID, as deletes and Events may lack it.
func nameless(o runs.Object) runs.Object {
	o.UID = ""
	return o
}

// addRuns puts the writes of each run into the group of what began it.
func (h *history) addRuns() {
	h.of = make([]*Group, len(h.runs))
	for i := range h.runs {
		run := &h.runs[i]
		g := h.began(i)
		h.of[i] = g
		h.before[loopKey{run.Controller, run.Key}] = i
		for _, w := range run.Writes {
			if w.Verb == "create" && w.Object.UID != "" {
				h.created[w.Object.UID] = g
			}
		}
		for _, c := range h.changesOf(run) {
			h.put(g, c)
		}
	}
}

// began returns the group of what began a run. A change that a user made begins something new, whatever else woke the
// controller. Otherwise it is the oldest recorded run that led to this one.
func (h *history) began(i int) *Group {
	run := &h.runs[i]
	parent := -1
	var news *edit
	for _, cause := range run.Causes {
		at, found := h.madeBy(i, cause)
		switch {
		case found && at < i:
			if parent < 0 || at < parent {
				parent = at
			}
		case !found && cause.Object != (runs.Object{}):
			if e := h.editOf(cause, run.Began); news == nil || e.begins && !news.begins {
				news = e
			}
		}
	}
	switch {
	case news != nil && news.begins:
		return h.groupOfEdit(news)
	case parent >= 0:
		return h.of[parent]
	case news != nil:
		return h.groupOfEdit(news)
	}
	g := &Group{
		ID: fmt.Sprintf("run-%s-%d-%d", run.Controller, run.Number, run.Began.UnixMilli()), Code: BeganItself, Object: run.Object, Actor: run.Controller,
		Title: run.Controller + " for " + cmp.Or(shortName(run.Object, h.facts.Namespace), run.Key),
	}
	h.groups = append(h.groups, g)
	return g
}

// madeBy returns the run that made the change of a cause.
func (h *history) madeBy(of int, cause runs.Cause) (at int, found bool) {
	switch {
	case cause.Verb == workqueue.Retry:
		at, found = h.before[loopKey{h.runs[of].Controller, h.runs[of].Key}]
		return at, found
	case cause.Object == (runs.Object{}):
		return 0, false
	}
	if at, found = h.wrote[versionOf(cause.Object, cause.Version)]; found {
		return at, true
	}
	if cause.Verb == workqueue.Deleted {
		for _, at := range slices.Backward(h.deleted[nameless(cause.Object)]) {
			if at < of {
				return at, true
			}
		}
	}
	return 0, false
}

// changesOf returns the lines of a run: one for each verb, kind and subresource.
func (h *history) changesOf(run *runs.Run) (all []Change) {
	type sort struct {
		verb, kind, subresource string
		code                    int
	}
	var order []sort
	of := map[sort][]*runs.Write{}
	for i := range run.Writes {
		w := &run.Writes[i]
		if !h.shows(w.Object) {
			continue
		}
		k := sort{w.Verb, w.Object.Kind, w.Subresource, w.Code}
		if of[k] == nil {
			order = append(order, k)
		}
		of[k] = append(of[k], w)
	}
	for _, k := range order {
		first := of[k][0]
		all = append(all, Change{
			At: run.Began, Actor: run.Controller, Object: first.Object, Text: oneSort(k.verb, of[k], k.subresource, run.Reasons), Count: len(of[k]),
			verb: k.verb, Run: run.Number, Deleted: (k.verb == "delete" || k.verb == "deletecollection") && k.code == 0, Trouble: k.code != 0,
		})
	}
	if n := len(all); n > 0 {
		all[n-1].Count += run.MoreWrites
	}
	return all
}

// shows reports whether the answer is about an object: one of the namespace, or the namespace itself.
func (h *history) shows(o runs.Object) bool {
	return h.facts.Namespace == "" || o.Namespace == h.facts.Namespace || o.Kind == "Namespace" && o.Name == h.facts.Namespace
}

// put adds a line to a group.
func (h *history) put(g *Group, c Change) {
	g.Changes = append(g.Changes, c)
	if g.Began.IsZero() || c.At.Before(g.Began) {
		g.Began = c.At
	}
	o := nameless(c.Object)
	if all := h.touched[o]; len(all) == 0 || all[len(all)-1] != g {
		h.touched[o] = append(all, g)
	}
}
