// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
)

// told is what one line says: a change of an object, and the moment that was written
// into it. A creation and a deletion have none: no name is used twice.
type told struct {
	verb  event.Verb
	key   string // namespace/name
	stamp string
}

// identity makes lines about one change equal.
func (t told) identity() told {
	if t.verb != event.Updated {
		t.stamp = ""
	}
	return t
}

// marked is the first of the two changes that the deletion of a Pod is for those who watch:
// it is marked as to be deleted, and then it is gone.
const marked event.Verb = "marked"

// ledger knows what was written, and when each side reported it. Its methods are safe for
// concurrent use.
type ledger struct {
	mu     sync.Mutex
	writes map[told]*posting
	next   int
	sides  map[string]*account
}

// posting is one write.
type posting struct {
	order    int
	sent     time.Time
	answered time.Time
	accepted bool                 // by the server
	seen     map[string]time.Time // by side
}

// account is what one side was told.
type account struct {
	lags    []float64      // ms, of the writes that were printed
	newest  map[string]int // the order of the newest change that was printed, by object
	twice   int            // printed again
	back    int            // printed after a later change of the same object
	unasked int            // no writer wrote that
	moved   time.Time      // when a line came last
}

func newLedger(sides ...string) *ledger {
	l := &ledger{writes: map[told]*posting{}, sides: map[string]*account{}}
	for _, side := range sides {
		l.sides[side] = &account{newest: map[string]int{}}
	}
	return l
}

// send notes a write that is about to be sent: a side may print it before the server answers.
func (l *ledger) send(t told, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range steps(t) {
		l.writes[t] = &posting{order: l.next, sent: now, seen: map[string]time.Time{}}
		l.next++
	}
}

// steps are the changes that a write leads to.
func steps(t told) []told {
	if t.verb == event.Deleted {
		return []told{{verb: marked, key: t.key}, t.identity()}
	}
	return []told{t.identity()}
}

// answer notes whether the server took a write. One that failed is not waited for.
func (l *ledger) answer(t told, accepted bool, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range steps(t) {
		l.writes[t].accepted, l.writes[t].answered = accepted, now
	}
}

// tell notes that a side was told.
func (l *ledger) tell(side string, t told, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.sides[side]
	a.moved = now
	w, found := l.writes[t.identity()]
	if mark := l.writes[told{verb: marked, key: t.key}]; t.verb == event.Updated && mark != nil && (!found || !w.seen[side].IsZero()) {
		w, found = mark, true // the stamp is still that of the change before
	}
	switch {
	case !found:
		a.unasked++
		return
	case !w.seen[side].IsZero():
		a.twice++
		return
	}
	w.seen[side] = now
	a.lags = append(a.lags, float64(now.Sub(w.sent))/float64(time.Millisecond))
	if newest, had := a.newest[t.key]; had && newest > w.order {
		a.back++
	} else {
		a.newest[t.key] = w.order
	}
}

// accepted is how many changes the server took, and failed how many it did not.
func (l *ledger) accepted() (accepted, failed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.writes {
		if w.accepted {
			accepted++
		} else {
			failed++
		}
	}
	return accepted, failed
}

// lost are the accepted changes by their verb that a side did not print, and moved is the
// time of its last line.
func (l *ledger) lost(side string) (lost map[event.Verb]int, moved time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost = map[event.Verb]int{}
	for t, w := range l.writes {
		if w.accepted && w.seen[side].IsZero() {
			lost[t.verb]++
		}
	}
	return lost, l.sides[side].moved
}

// lags are those of a side in milliseconds.
func (l *ledger) lags(side string) []float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.sides[side].lags)
}

// behind has, for each change, how many milliseconds after the server's answer a side printed it;
// 0 if it was printed before the answer.
func (l *ledger) behind(side string) (behind []float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.writes {
		if seen := w.seen[side]; w.accepted && !seen.IsZero() {
			behind = append(behind, max(0, float64(seen.Sub(w.answered))/float64(time.Millisecond)))
		}
	}
	return behind
}

// report says in a line what a side was told beside what it should be.
func (l *ledger) report(side string) string {
	lost, _ := l.lost(side)
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.sides[side]
	text := fmt.Sprintf("%d changes reported, %d lost, %d reported twice, %d after a later one of the same Pod, %d that were never written",
		len(a.lags), total(lost), a.twice, a.back, a.unasked)
	if len(lost) == 0 {
		return text
	}
	var parts []string
	for _, verb := range slices.Sorted(maps.Keys(lost)) {
		parts = append(parts, fmt.Sprintf("%d %s", lost[verb], verb))
	}
	return text + "; lost were " + strings.Join(parts, ", ")
}

func total(lost map[event.Verb]int) (n int) {
	for _, count := range lost {
		n += count
	}
	return n
}
