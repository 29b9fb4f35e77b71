// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"slices"
	"time"

	"github.com/setpoint-io/setpoint/runs"
)

// NamespaceFacts are what is known of the changes in a namespace.
type NamespaceFacts struct {
	Now time.Time
	// Since is the beginning of the time that the answer is about.
	Since time.Time
	// Namespace is empty for all namespaces.
	Namespace string

	// Objects are those that the server has. Their metadata is enough.
	Objects []Known
	Events  []NamespaceEvent
	// Unread are sentences about what could not be read.
	Unread []string

	// Recorded is set if the record of a manager was read. Without it NotRecorded says why.
	Recorded    bool
	NotRecorded string
	// Runs are the recorded runs that wrote. Runs before Since may be among them: they have begun what went on later.
	Runs []runs.Run
	// Kept is the time from which on the record has all runs that wrote; zero: all it ever had.
	Kept time.Time
}

// Known is an object as the server has it.
type Known struct {
	Object runs.Object
	State  map[string]any
}

// NamespaceEvent is an Event of Kubernetes, with the object that it is about.
type NamespaceEvent struct {
	Event
	About runs.Object `json:"about"`
}

// Codes of what began a group of changes. They stay the same from version to version.
const (
	BeganRollout  = "Rollout"  // the template of a workload was changed
	BeganScaling  = "Scaling"  // the wanted number of replicas was changed
	BeganCreation = "Creation" // an object was created
	BeganDeletion = "Deletion" // an object was deleted
	BeganChange   = "Change"   // an object was changed otherwise
	BeganStatus   = "Status"   // another program, such as the kubelet, changed the status of an object
	BeganItself   = "Itself"   // a controller began it: at its time, or after a change that is not recorded
	BeganEvent    = "Event"    // an Event has no recorded change to go with
)

// Happened says what changed in a namespace. Its JSON form is stable: fields are added and never change their meaning.
type Happened struct {
	Namespace string    `json:"namespace,omitempty"`
	AsOf      time.Time `json:"asOf"`
	Since     time.Time `json:"since"`
	Groups    []Group   `json:"groups,omitempty"` // by their newest changes, the newest first
	// MoreGroups counts the older groups that are left out.
	MoreGroups int      `json:"moreGroups,omitempty"`
	Unknown    []string `json:"unknown,omitempty"`
}

// Group is what one beginning led to.
type Group struct {
	// ID stays the same for as long as the facts have the beginning.
	ID     string      `json:"id"`
	Code   string      `json:"code"`
	Title  string      `json:"title"`  // such as "rollout of web"
	Object runs.Object `json:"object"` // that it began with
	Actor  string      `json:"actor"`
	// Probably is set if the actor was found by the managedFields of the object, and not by a record.
	Probably bool      `json:"probably,omitempty"`
	Began    time.Time `json:"began"` // the oldest change that is known
	Last     time.Time `json:"last"`
	Total    int       `json:"total"`   // how many changes there are
	Changes  []Change  `json:"changes"` // the newest first
	// Trouble is set if a server refused a change, or an Event warns.
	Trouble bool `json:"trouble,omitempty"`

	edit *edit // that it began with; nil: it began with a run or an Event
}

// Change is one line of a group: a write, the like writes of one run, or an Event.
type Change struct {
	At       time.Time   `json:"at"`
	Actor    string      `json:"actor"`
	Probably bool        `json:"probably,omitempty"`
	Object   runs.Object `json:"object"` // the first one, if several were written
	Text     string      `json:"text"`
	Count    int         `json:"count"` // how many objects were written, or how often the Event was seen
	Run      uint64      `json:"run,omitempty"`
	Deleted  bool        `json:"deleted,omitempty"`
	Trouble  bool        `json:"trouble,omitempty"`

	verb string // of a write
}

// Bounds of the answer.
const (
	mostGroups  = 100
	mostChanges = 100 // of a group
)

// WhatHappened returns what changed in a namespace, folded by what began it.
func WhatHappened(f NamespaceFacts) Happened {
	h := newHistory(&f)
	h.addRuns()
	h.addEdits()
	h.addEvents()
	answer := Happened{Namespace: f.Namespace, AsOf: f.Now, Since: f.Since}
	for _, g := range h.groups {
		g.name(f.Namespace)
	}
	for _, g := range foldAlike(h.groups) {
		if g.finish(f.Since) {
			answer.Groups = append(answer.Groups, *g)
		}
	}
	slices.SortStableFunc(answer.Groups, func(a, b Group) int { return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(b.ID, a.ID)) })
	answer.MoreGroups = max(len(answer.Groups)-mostGroups, 0)
	answer.Groups = answer.Groups[:len(answer.Groups)-answer.MoreGroups]
	answer.Unknown = append(answer.Unknown, f.Unread...)
	switch {
	case !f.Recorded:
		answer.Unknown = append(answer.Unknown, "what controllers did and why: "+f.NotRecorded)
	case f.Kept.After(f.Since):
		answer.Unknown = append(answer.Unknown, "not recorded: before "+f.Kept.Local().Format(time.TimeOnly)+", as the record does not keep those runs any more")
	}
	return answer
}

// finish leaves out the changes before a time, sorts the others, and reports whether any is left.
func (g *Group) finish(since time.Time) bool {
	g.Changes = slices.DeleteFunc(g.Changes, func(c Change) bool { return c.At.Before(since) })
	if len(g.Changes) == 0 {
		return false
	}
	slices.SortStableFunc(g.Changes, func(a, b Change) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.Run, a.Run)) })
	g.Last, g.Began, g.Total = g.Changes[0].At, g.Changes[len(g.Changes)-1].At, 0
	for i := range g.Changes {
		if g.Changes[i].Run == 0 {
			g.Total++ // an Event that was seen often is one change
		} else {
			g.Total += g.Changes[i].Count
		}
		g.Trouble = g.Trouble || g.Changes[i].Trouble
	}
	g.Changes = g.Changes[:min(len(g.Changes), mostChanges)]
	return true
}
