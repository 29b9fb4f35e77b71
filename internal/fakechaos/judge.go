// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakechaos

import (
	"fmt"
	"maps"
	"sync"

	"github.com/setpoint-io/setpoint/object"
)

// Breach is a guarantee of a cache that was broken.
type Breach string

// The breaches.
const (
	// NotEqual: at a quiet point the cache did not hold what the server held.
	NotEqual Breach = "not equal at a quiet point"
	// NotTold: at a quiet point a handler knew another state than the server's.
	NotTold Breach = "handler not up to date"
	// MissedDeletion: an object that a handler knew was deleted, and the handler was not
	// notified.
	MissedDeletion Breach = "deletion missed"
	// WentBack: an event had an older version of an object than the one before, in one
	// history.
	WentBack Breach = "version went back"
	// Confused: an object that replaced another was delivered as an update of it, and the
	// deletion of the other was not delivered.
	Confused Breach = "identity lost"
	// Disorder: an event of a handler does not follow from its events before.
	Disorder Breach = "events out of order"
	// Unsound: a snapshot was not the state at its version.
	Unsound Breach = "unsound snapshot"
	// Unbounded: more changes waited for a handler than there are objects.
	Unbounded Breach = "backlog unbounded"
)

// Breaches are all breaches.
var Breaches = []Breach{NotEqual, NotTold, MissedDeletion, WentBack, Confused, Disorder, Unsound, Unbounded}

// described is how many breaches of each sort the report describes. It counts all.
const described = 3

// Judge compares a cache and the events of its handlers with the model of the server. It is
// safe for concurrent use.
type Judge struct {
	server *Server

	mu        sync.Mutex
	counts    map[Breach]int
	texts     []string
	snapshots int
	told      int
}

// NewJudge returns a judge of the clients of a server.
func NewJudge(s *Server) *Judge { return &Judge{server: s, counts: map[Breach]int{}} }

// Breach notes a breach.
func (j *Judge) Breach(b Breach, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counts[b]++
	if j.counts[b] <= described {
		j.texts = append(j.texts, string(b)+": "+fmt.Sprintf(format, args...))
	}
}

// Snapshot compares a snapshot of a cache with the model's state at its version.
func (j *Judge) Snapshot(version string, contents map[object.Key]Seen) {
	j.mu.Lock()
	j.snapshots++
	j.mu.Unlock()
	s := j.server
	s.mu.Lock()
	v := number(version)
	h := s.model.past[v%histories]
	if h == nil {
		s.mu.Unlock()
		j.Breach(Unsound, "a snapshot is at version %s, of no recent history; now is %s", version, s.Version())
		return
	}
	want := seen(h.at(v))
	s.mu.Unlock()
	if !maps.Equal(want, contents) {
		j.Breach(Unsound, "a snapshot at %s: %s", version, difference(want, contents))
	}
}

// seen returns UID and version of each object of a state.
func seen(state map[object.Key]*stored) map[object.Key]Seen {
	all := make(map[object.Key]Seen, len(state))
	for key, o := range state {
		all[key] = o.seen
	}
	return all
}

// difference counts the objects in which two states differ, and names one.
func difference(want, have map[object.Key]Seen) string {
	count, example := 0, ""
	note := func(key object.Key) {
		if want[key] != have[key] {
			count++
			example = fmt.Sprintf("%s is %v, not %v", key, have[key], want[key])
		}
	}
	for key := range want {
		note(key)
	}
	for key := range have {
		if _, both := want[key]; !both {
			note(key)
		}
	}
	return fmt.Sprintf("%d of %d objects differ: %s", count, len(want), example)
}

// Observer keeps what one handler received. Its methods are called by the handler, one at
// a time.
type Observer struct {
	Name  string
	judge *Judge

	mu    sync.Mutex
	known map[object.Key]Seen
}

// Observer returns one for a handler that has received nothing yet.
func (j *Judge) Observer(name string) *Observer {
	return &Observer{Name: name, judge: j, known: map[object.Key]Seen{}}
}

func (o *Observer) take(key object.Key, now Seen) (before Seen) {
	o.judge.mu.Lock()
	o.judge.told++
	o.judge.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	before = o.known[key]
	if now == (Seen{}) {
		delete(o.known, key)
	} else {
		o.known[key] = now
	}
	return before
}

func (o *Observer) breach(b Breach, key object.Key, before Seen, what string, now ...Seen) {
	o.judge.Breach(b, "handler %s received %s as %v, and then %s %v", o.Name, key, before, what, now)
}

// Added is called when the handler gets an object that it did not have.
func (o *Observer) Added(key object.Key, now Seen) {
	switch before := o.take(key, now); {
	case before == Seen{}:
	case before.UID == now.UID:
		o.breach(Disorder, key, before, "that it was added again as", now)
	default:
		o.breach(MissedDeletion, key, before, "that another was added as", now)
	}
}

// Updated is called for an update and for a resync.
func (o *Observer) Updated(key object.Key, old, now Seen) {
	before := o.take(key, now)
	switch {
	case before != old:
		o.breach(Disorder, key, before, "of an update", old, now)
	case old.UID != now.UID:
		o.breach(Confused, key, before, "of an update", old, now)
	case number(now.Version) < number(before.Version) && !o.judge.goesBack(key, before, now):
		o.breach(WentBack, key, before, "of an update", old, now)
	}
}

// Replaced is called when another object has the name.
func (o *Observer) Replaced(key object.Key, old, now Seen) {
	if before := o.take(key, now); before != old || old.UID == now.UID {
		o.breach(Disorder, key, before, "of a replacement", old, now)
	}
}

// Deleted is called when an object was deleted. last may be newer than the state that the
// handler had.
func (o *Observer) Deleted(key object.Key, last Seen) {
	if before := o.take(key, Seen{}); before.UID != last.UID {
		o.breach(Disorder, key, before, "of the end of", last)
	}
}

func (j *Judge) goesBack(key object.Key, before, after Seen) bool {
	j.server.mu.Lock()
	defer j.server.mu.Unlock()
	return j.server.model.goesBack(key, before, after)
}

// is reports whether the handler has the state of the server.
func (o *Observer) is(truth map[object.Key]Seen) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Equal(o.known, truth)
}

// judgeAtRest records each object of which the handler has another state than the server at a
// quiet point, and reports whether there is none.
func (o *Observer) judgeAtRest(truth map[object.Key]Seen) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if maps.Equal(o.known, truth) {
		return true
	}
	for key, s := range o.known {
		if truth[key].UID != s.UID {
			o.judge.Breach(MissedDeletion, "handler %s still knows %s as %v when all is quiet", o.Name, key, s)
		}
	}
	o.judge.Breach(NotTold, "handler %s: %s", o.Name, difference(truth, o.known))
	// A mistake is counted once, and not again at later quiet points.
	o.known = maps.Clone(truth)
	return false
}
