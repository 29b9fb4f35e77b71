// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
)

// thing is an object that is written to, also after it was deleted and made again.
type thing struct {
	kind string // "configmaps"
	key  object.Key
}

func (t thing) String() string { return t.kind + " " + t.key.Name }

// made is a change that the server has said to have stored.
type made struct {
	verb    event.Verb
	uid     types.UID
	version string // of what it led to; empty for a deletion
	at      time.Time
}

// arrival is an event that a receiver got.
type arrival struct {
	id      string
	verb    event.Verb
	uid     types.UID
	version string
	run     int // the process that sent it
}

// state names what a change leads to, the same for what was made and what arrived.
type state struct {
	uid     types.UID
	version string
}

func (m made) state() state { return state{m.uid, m.version} }

func (a arrival) state() state {
	if a.verb == event.Deleted {
		return state{uid: a.uid} // an object is deleted once
	}
	return state{a.uid, a.version}
}

// ledger has what was made and, by receiver, what arrived of it, each in its order.
type ledger struct {
	mu      sync.Mutex
	made    map[thing][]made
	arrived map[string]map[thing][]arrival
	news    map[string]bool // receivers and IDs that have arrived
}

func newLedger() *ledger {
	return &ledger{made: map[thing][]made{}, arrived: map[string]map[thing][]arrival{}, news: map[string]bool{}}
}

func (l *ledger) wrote(t thing, m made) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made[t] = append(l.made[t], m)
}

// got notes an arrival, and reports whether it is the first of its change.
func (l *ledger) got(receiver string, t thing, a arrival) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.arrived[receiver] == nil {
		l.arrived[receiver] = map[thing][]arrival{}
	}
	l.arrived[receiver][t] = append(l.arrived[receiver][t], a)
	first := !l.news[receiver+a.id]
	l.news[receiver+a.id] = true
	return first
}

// verdict is what became of the changes, as one receiver sees it.
type verdict struct {
	made       int // changes
	told       int // of them, those of which an event of their own arrived
	merged     int // of them, those that are in a later event of their object
	forgiven   int // of merged, those of a time for which the server has no steps
	missed     int // of them, those of which nothing tells
	deletions  int // of told
	arrivals   int // events that arrived
	duplicates int // of them, those that had been there
	disorder   int // of the others, those after a later change of their object
	reworded   int // of the others, those of another verb than the change, and twice of one change
	unknown    int // of the others, those of no change that was made
	lines      []string
}

func (v *verdict) say(format string, args ...any) {
	if len(v.lines) < 40 {
		v.lines = append(v.lines, fmt.Sprintf(format, args...))
	}
}

// judge compares what was made of some kinds with what arrived at a receiver. Forgive says
// of what was made at some time that it may be merged.
func (l *ledger) judge(receiver string, kinds []string, forgive func(time.Time) bool) *verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := new(verdict)
	for _, t := range slices.SortedFunc(maps.Keys(l.made), func(a, b thing) int {
		return slices.Compare([]string{a.kind, a.key.Name}, []string{b.kind, b.key.Name})
	}) {
		if !slices.Contains(kinds, t.kind) {
			continue
		}
		v.object(t, l.made[t], l.arrived[receiver][t], forgive)
	}
	for t, arrivals := range l.arrived[receiver] {
		if len(l.made[t]) == 0 || !slices.Contains(kinds, t.kind) {
			v.arrivals += len(arrivals)
			v.unknown += len(arrivals)
			v.say("%s: %d events, which nobody has made, or not for this receiver", t, len(arrivals))
		}
	}
	return v
}

func (v *verdict) object(t thing, all []made, arrivals []arrival, forgive func(time.Time) bool) {
	place := map[state]int{}
	for n, m := range all {
		place[m.state()] = n
	}
	v.made += len(all)
	v.arrivals += len(arrivals)
	told := make([]bool, len(all))
	ids := map[string]bool{}
	latest := -1
	for _, a := range arrivals {
		if ids[a.id] {
			v.duplicates++
			continue
		}
		ids[a.id] = true
		n, known := place[a.state()]
		switch {
		case !known:
			v.unknown++
			v.say("%s: %+v is of no change", t, a)
			continue
		case n < latest:
			v.disorder++
			v.say("%s: %+v is of change %d, and change %d was told before", t, a, n, latest)
		case told[n] || a.verb != all[n].verb:
			v.reworded++
			v.say("%s: change %d %+v is told as %+v", t, n, all[n], a)
		}
		told[n] = true
		latest = max(latest, n)
	}
	for n, yes := range told {
		if yes {
			v.told++
			if all[n].verb == event.Deleted {
				v.deletions++
			}
		}
	}
	v.untold(t, all, told, latest, forgive)
}

// untold says what became of changes without an event. They are merged if what was told
// next leads past them, and missed if there is no such thing.
func (v *verdict) untold(t thing, all []made, told []bool, latest int, forgive func(time.Time) bool) {
	// At the end, an object that is gone, and gone for the receiver, has nothing to add.
	gone := func(n int) bool { return n < 0 || all[n].verb == event.Deleted }
	known := -1
	for n, yes := range told {
		if yes {
			known = n
		}
	}
	for n, yes := range told {
		switch {
		case yes:
		case n < latest || gone(len(all)-1) && gone(known):
			v.merged++
			if forgive(all[n].at) {
				v.forgiven++
			} else {
				v.say("%s: change %d %+v is not told by itself", t, n, all[n])
			}
		default:
			v.missed++
			v.say("%s: change %d %+v is missed", t, n, all[n])
		}
	}
}

// The ledger is believed only if it finds what is wrong.
func TestTheLedgerFindsWhatIsLost(t *testing.T) {
	one := thing{"configmaps", object.Key{Name: "a"}}
	never := func(time.Time) bool { return false }
	history := []made{
		{event.Created, "u", "1", time.Time{}}, {event.Updated, "u", "2", time.Time{}}, {event.Deleted, "u", "", time.Time{}},
		{event.Created, "w", "4", time.Time{}}, {event.Updated, "w", "5", time.Time{}},
	}
	created, updated, deleted := arrival{"A", event.Created, "u", "1", 0}, arrival{"B", event.Updated, "u", "2", 0}, arrival{"C", event.Deleted, "u", "3", 0}
	again, changed := arrival{"D", event.Created, "w", "4", 0}, arrival{"E", event.Updated, "w", "5", 0}
	for _, test := range []struct {
		name     string
		made     int // of history
		arrivals []arrival
		want     verdict
	}{
		{"all is told", 5, []arrival{created, updated, deleted, again, changed}, verdict{told: 5, deletions: 1}},
		{"some is told again", 5, []arrival{created, updated, created, deleted, again, updated, changed}, verdict{told: 5, deletions: 1, duplicates: 2}},
		{"the end is missed", 5, []arrival{created, updated, deleted, again}, verdict{told: 4, deletions: 1, missed: 1}},
		{"a deletion is missed", 3, []arrival{created, updated}, verdict{told: 2, missed: 1}},
		{"all is missed", 3, nil, verdict{merged: 3}},
		{"all of what is there is missed", 5, nil, verdict{missed: 5}},
		{"a step is merged", 5, []arrival{created, deleted, again, changed}, verdict{told: 4, deletions: 1, merged: 1}},
		{"a deletion is merged", 5, []arrival{created, updated, {"D", event.Replaced, "w", "4", 0}, changed}, verdict{told: 4, merged: 1, reworded: 1}},
		{"two change places", 5, []arrival{updated, created, deleted, again, changed}, verdict{told: 5, deletions: 1, disorder: 1}},
		{"one comes under two names", 5, []arrival{created, {"X", event.Existing, "u", "1", 0}, updated, deleted, again, changed}, verdict{told: 5, deletions: 1, reworded: 1}},
		{"one was never made", 3, []arrival{created, updated, changed, deleted}, verdict{told: 3, deletions: 1, unknown: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLedger()
			for _, m := range history[:test.made] {
				l.wrote(one, m)
			}
			for _, a := range test.arrivals {
				l.got("r", one, a)
			}
			test.want.made, test.want.arrivals = test.made, len(test.arrivals)
			got := l.judge("r", []string{one.kind}, never)
			if lines := got.lines; fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", func() verdict { w := test.want; w.lines = lines; return w }()) {
				t.Errorf("%+v, want %+v", *got, test.want)
			}
		})
	}
}
